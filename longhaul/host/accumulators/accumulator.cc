#include "longhaul/host/accumulators/accumulator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/host/kernels/attr_or.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestPause{3600};

std::string described(const GradientSpec& spec) {
  return fmt::format("{} of {} {}", spec.reduction == GradientReduction::kMean ? "means" : "sums",
                     dtype_name(spec.dtype), spec.shape.to_string());
}

// "1 of 2 gradients (of worker0)"
std::string count_text(int32_t came, int32_t required, const std::set<std::string>& workers) {
  const std::string text = fmt::format("{} of {} gradients", came, required);
  return workers.empty() ? text : fmt::format("{} (of {})", text, fmt::join(workers, ", "));
}

void warn_of_missing(const std::string& name, int64_t step, const std::string& count, Seconds waited) {
  log_warning(
      "'{}': step {} has {} after {:.3g} s, and waits for the rest. A replica was not started, has died, or is slow, "
      "or replicas_to_aggregate is larger than the number of replicas. Start what is missing; or set "
      "SyncReplicasOptions::wait_secs and min_replicas, and steps go on without it",
      name, step, count, waited.count());
}

}  // namespace

GradientSpec gradient_spec(const Operation& handle) {
  const bool sums = attr_or<std::string>(handle, "reduction_type", "MEAN") == "SUM";
  return {.dtype = handle.attr<DType>("dtype"),
          .shape = attr_or(handle, "shape", Shape::unknown_rank()),
          .reduction = sums ? GradientReduction::kSum : GradientReduction::kMean};
}

Accumulator::Accumulator(std::string name, GradientSpec spec, std::unique_ptr<GradientSum> sum)
    : name_(std::move(name)), spec_(std::move(spec)), sum_(std::move(sum)) {}

void Accumulator::check_handle(const Operation& handle) const {
  const GradientSpec wanted = gradient_spec(handle);
  if (wanted.dtype == spec_.dtype && wanted.shape == spec_.shape && wanted.reduction == spec_.reduction) return;
  throw InvalidArgumentError(fmt::format(
      "{}: Shared conditional accumulator '{}' has {}, but this operation declares {}. Use another shared_name for one "
      "of them",
      handle.name(), name_, described(spec_), described(wanted)));
}

// Of a step that is over; or of one that was undone, and has not been reached again.
bool Accumulator::is_of_another_step(int64_t local_step) const {
  return local_step < step_ || (local_step > step_ && local_step <= last_undone_);
}

Accumulator::Applied Accumulator::apply(int64_t local_step, std::span<const Tensor> gradient, const std::string& worker,
                                        const Clock& clock) {
  const Seconds now = clock.now();
  MutexLock lock(mutex_);
  check_not_dropped();
  if (is_of_another_step(local_step)) {
    ++dropped_;
    return {false, step_};
  }
  if (!worker.empty()) workers_.insert(worker);
  came_at_.reserve(came_at_.size() + 1);
  sum_->add(gradient);
  came_at_.push_back(now);
  wake_first();
  return {true, step_};
}

void Accumulator::wake_first() {
  if (!takers_.empty()) takers_.front()->changed.notify_one();
}

// From its construction to its end; the next one in the line is then woken, and looks.
class Accumulator::Place {
 public:
  Place(Accumulator& accumulator, Taker& taker) : accumulator_(accumulator), taker_(taker) {
    MutexLock lock(accumulator_.mutex_);
    accumulator_.check_not_dropped();
    if (accumulator_.takes_cancelled_) taker_.end = End::kTakesCancelled;
    accumulator_.takers_.push_back(&taker_);
  }
  ~Place() {
    MutexLock lock(accumulator_.mutex_);
    std::erase(accumulator_.takers_, &taker_);
    accumulator_.wake_first();
  }
  Place(const Place&) = delete;

 private:
  Accumulator& accumulator_;
  Taker& taker_;
};

// The mutex is not held while the watch is made or destroyed: a cancellation takes them the other way round.
std::vector<Tensor> Accumulator::take(int32_t num_required, const WaitLimits& limits, const TakeWait& wait) {
  if (num_required <= 0)
    throw InvalidArgumentError(fmt::format("Argument num_required must be positive, but was {}", num_required));
  const Seconds now = wait.clock->now();
  Taker taker{.num_required = num_required, .wait = wait, .began = now, .warn_at = now + wait.warn_secs};
  std::optional<Cancellation::Watch> watch;
  if (limits.cancellation != nullptr) {
    watch.emplace(*limits.cancellation, [this, &taker] {
      MutexLock lock(mutex_);
      taker.end = End::kCancelled;
      taker.changed.notify_one();
    });
  }
  const End end = wait_and_take(taker, limits.deadline);
  watch.reset();
  if (end != End::kReady) end_wait(end, limits);
  return std::move(taker.taken);
}

// The log is written without the lock; the taker keeps its place meanwhile.
Accumulator::End Accumulator::wait_and_take(Taker& taker, Seconds deadline) {
  const Place place(*this, taker);
  End end = await(taker, deadline);
  while (end == End::kOverdue) {
    const Seconds waited = taker.wait.clock->now() - taker.began;
    warn_of_missing(name_, taker.step, count_text(taker.came, taker.num_required, taker.workers), waited);
    taker.warn_at = taker.wait.clock->now() + std::min(waited, kLongestPause);
    end = await(taker, deadline);
  }
  if (end == End::kReady && taker.came < taker.num_required &&
      !taker.workers.empty()) {  // those of one variable say it
    log_warning("'{}': step {} continues with {}, which have waited {:.3g} s for the others (wait_secs, min_replicas)",
                name_, taker.step, count_text(taker.came, taker.num_required, taker.workers),
                taker.wait.wait_secs.count());
  }
  return end;
}

// The deadline is on the machine's clock, the other times may be on that of a simulation.
Accumulator::End Accumulator::await(Taker& taker, Seconds deadline) {
  Clock& clock = *taker.wait.clock;
  MutexLock lock(mutex_);
  while (true) {
    const Seconds now = clock.now();
    if (taker.end) return *taker.end;
    const bool is_first = takers_.front() == &taker;
    const std::optional<Seconds> fewer_at = is_first ? fewer_will_do_at(taker.wait) : std::nullopt;
    if (is_first && (count() >= taker.num_required || (fewer_at && now >= *fewer_at))) {
      give_all(taker);
      return End::kReady;
    }
    Seconds left = deadline.count() > 0 ? deadline - Clock::real().now() : kLongestPause;
    if (left <= Seconds{0}) return End::kLate;
    if (taker.wait.warn_secs.count() > 0) {
      describe(taker);
      if (now >= taker.warn_at) return End::kOverdue;
      left = std::min(left, taker.warn_at - now);
    }
    if (fewer_at) left = std::min(left, *fewer_at - now);
    clock.wait_until(taker.changed, mutex_, now + left);  // wait: for gradients, cancel_takes(), or a cancellation
  }
}

// Counted from the gradients, not from the take: the chief takes those of one variable after those of another.
std::optional<Seconds> Accumulator::fewer_will_do_at(const TakeWait& wait) const {
  const bool may_be_fewer = wait.wait_secs.count() > 0 && wait.min_required > 0;
  if (!may_be_fewer || count() < wait.min_required) return std::nullopt;
  return came_at_[static_cast<size_t>(wait.min_required) - 1] + wait.wait_secs;
}

// If memory runs out, the gradients stay.
void Accumulator::give_all(Taker& taker) {
  taker.taken = sum_->take();
  describe(taker);
  if (count() < taker.num_required) ++reduced_;
  came_at_.clear();
  workers_.clear();
  ++step_;
}

void Accumulator::describe(Taker& taker) const {
  taker.came = count();
  taker.step = step_;
  if (taker.workers != workers_) taker.workers = workers_;
}

void Accumulator::end_wait(End end, const WaitLimits& limits) const {
  if (end == End::kCancelled) limits.cancellation->check();
  if (end == End::kDropped) {
    MutexLock lock(mutex_);
    check_not_dropped();
  }
  if (end == End::kTakesCancelled) throw CancelledError(fmt::format("'{}': TakeGrad operation was cancelled", name_));
  throw DeadlineExceededError(fmt::format("'{}': the run timed out while it waited for gradients", name_));
}

void Accumulator::set_global_step(int64_t step) {
  int64_t before = 0;
  int32_t undone = 0;
  {
    MutexLock lock(mutex_);
    before = step_;
    takes_cancelled_ = false;
    step_ = step;
    if (step < before) {
      last_undone_ = std::max(last_undone_, before);
      undone = count();
      came_at_.clear();
      workers_.clear();
      dropped_ += undone;
      sum_->clear();
    }
  }
  if (step >= before) return;
  log_warning(
      "'{}': Attempt to set current_global_step_ to smaller value: current_global_step_ = {} >= {} = new_global_step. "
      "Gradients of the steps that are undone are dropped ({} so far)",
      name_, before, step, undone);
}

void Accumulator::cancel_takes() {
  MutexLock lock(mutex_);
  takes_cancelled_ = true;
  end_takes(End::kTakesCancelled);
}

void Accumulator::drop(const std::string& why) {
  MutexLock lock(mutex_);
  why_dropped_ = why;
  end_takes(End::kDropped);
}

void Accumulator::end_takes(End end) {
  for (Taker* taker : takers_) {
    taker->end = end;
    taker->changed.notify_one();
  }
}

void Accumulator::check_not_dropped() const {
  if (!why_dropped_.empty()) throw AbortedError(fmt::format("'{}': {}", name_, why_dropped_));
}

int64_t Accumulator::step() const {
  MutexLock lock(mutex_);
  return step_;
}

int32_t Accumulator::num_accumulated() const {
  MutexLock lock(mutex_);
  return count();
}

int64_t Accumulator::num_dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

int64_t Accumulator::num_reduced() const {
  MutexLock lock(mutex_);
  return reduced_;
}

size_t Accumulator::waiting() const {
  MutexLock lock(mutex_);
  return takers_.size();
}

}  // namespace longhaul

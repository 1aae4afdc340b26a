#include "longhaul/host/accumulators/accumulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/log.h"
#include "longhaul/host/kernels/attr_or.h"

namespace longhaul {
namespace {

std::string described(const GradientSpec& spec) {
  return fmt::format("{} of {} {}", spec.reduction == GradientReduction::kMean ? "means" : "sums",
                     dtype_name(spec.dtype), spec.shape.to_string());
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

Accumulator::Applied Accumulator::apply(int64_t local_step, std::span<const Tensor> gradient) {
  MutexLock lock(mutex_);
  check_not_dropped();
  if (is_of_another_step(local_step)) {
    ++dropped_;
    return {false, step_};
  }
  sum_->add(gradient);
  ++count_;
  wake_first();
  return {true, step_};
}

bool Accumulator::is_served(const Taker& taker) const {
  return takers_.front() == &taker && count_ >= taker.num_required;
}

void Accumulator::wake_first() {
  if (!takers_.empty()) takers_.front()->changed.notify_one();
}

// The mutex is not held while the watch is made or destroyed: a cancellation takes them the other way round.
std::vector<Tensor> Accumulator::take(int32_t num_required, const WaitLimits& limits) {
  if (num_required <= 0)
    throw InvalidArgumentError(fmt::format("Argument num_required must be positive, but was {}", num_required));
  Taker taker;
  taker.num_required = num_required;
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

// The next one in the line is woken in each case; it looks when this one has gone. If memory runs out, the gradients
// stay.
Accumulator::End Accumulator::wait_and_take(Taker& taker, Seconds deadline) {
  MutexLock lock(mutex_);
  check_not_dropped();
  if (takes_cancelled_) return End::kTakesCancelled;
  takers_.push_back(&taker);
  const End end = await(taker, deadline);
  std::erase(takers_, &taker);
  wake_first();
  if (end != End::kReady) return end;
  taker.taken = sum_->take();
  count_ = 0;
  ++step_;
  return end;
}

Accumulator::End Accumulator::await(Taker& taker, Seconds deadline) {
  while (!is_served(taker) || taker.end) {
    if (taker.end) return *taker.end;
    if (deadline.count() <= 0) {
      taker.changed.wait(mutex_);  // wait: gradients, cancel_takes() and a cancellation end it
      continue;
    }
    const Seconds left = deadline - Clock::real().now();
    if (left <= Seconds{0}) return End::kLate;
    taker.changed.wait_for(mutex_, left);  // wait: the run's time
  }
  return End::kReady;
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
      undone = std::exchange(count_, 0);
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
  return count_;
}

int64_t Accumulator::num_dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

size_t Accumulator::waiting() const {
  MutexLock lock(mutex_);
  return takers_.size();
}

}  // namespace longhaul

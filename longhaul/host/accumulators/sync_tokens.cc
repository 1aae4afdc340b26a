#include "longhaul/host/accumulators/sync_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/no_steps_expected.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestPauseOfToken{3600};

Clock& clock_of(const SyncTokens::Wait& wait) {
  return wait.clock == nullptr ? Clock::real() : *wait.clock;
}

int64_t step_of_token(const Tensor& token) {
  return token.dtype() == kInt32 ? token.item<int32_t>() : token.item<int64_t>();
}

Tensor token_of_step(DType dtype, int64_t step) {
  return dtype == kInt32 ? Tensor::scalar(static_cast<int32_t>(step)) : Tensor::scalar(step);
}

// How long a wait on `clock` may last, of which the run's part is on the machine's.
WaitLimits slice_of(const SyncTokens::Wait& wait, Clock& clock, Seconds pause) {
  Seconds left = pause;
  if (wait.limits.deadline.count() > 0) left = std::min(left, wait.limits.deadline - Clock::real().now());
  return {
      .deadline = clock.now() + std::max(left, Seconds{0}), .cancellation = wait.limits.cancellation, .clock = &clock};
}

bool is_over(const WaitLimits& limits) {
  constexpr Seconds kRounding{0.001};
  return limits.deadline.count() > 0 && Clock::real().now() + kRounding >= limits.deadline;
}

}  // namespace

SyncTokens::SyncTokens(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}

// False: the queue is closed. It has no other limit.
bool SyncTokens::add(int64_t step) {
  QueueElement element{token_of_step(queue_->signature().dtypes[0], step)};
  return queue_->try_enqueue(element);
}

std::vector<int64_t> SyncTokens::drain() {
  std::vector<int64_t> steps;
  QueueElement element;
  while (queue_->try_dequeue(&element)) steps.push_back(step_of_token(element[0]));
  return steps;
}

// The chief's own replicas have joined just before, in the same session.
void SyncTokens::renew(const Cancellation* chief, int64_t step, int64_t count) {
  MutexLock lock(mutex_);
  const bool undoes = step_ && *step_ > step;
  ++chiefs_;
  if (undoes) undone_by_ = chiefs_;
  first_step_ = step;
  step_ = step;
  has_made_steps_ = false;
  for (const auto& [key, holder] : holders_) {
    if (holder->session.get() == chief) holder->chiefs = chiefs_;
    const bool is_stranded = holder->waits_from && (undoes || *holder->waits_from != step);
    if (is_stranded && !holder->has_ended) ++count;
  }
  drain();
  for (int64_t i = 0; i < count; ++i) add(step);
  begun_.notify_all();
}

void SyncTokens::join(const Replica& replica) {
  if (replica.session == nullptr) return;
  const std::shared_ptr<Holder> holder = holder_of(replica);
  MutexLock lock(mutex_);
  holder->chiefs = chiefs_;
  holder->joined_at = step_;
  holder->token.reset();
}

void SyncTokens::await_chief(const Replica& replica, const Wait& wait) {
  await_chief_after(0, replica, wait, "");
}

// A step's tokens are put after the model has come to it: so the model, if it was read later, is before them only if it
// was set back.
void SyncTokens::follow(const Replica& replica, int64_t step, const Wait& wait) {
  if (replica.session == nullptr) return;
  const std::shared_ptr<Holder> holder = holder_of(replica);
  int64_t chiefs = 0;
  std::string why;
  {
    MutexLock lock(mutex_);
    if (!holder->joined_at || step >= *holder->joined_at) return;
    chiefs = holder->chiefs;
    why = fmt::format("the model was set back from step {} to {}, and no chief has begun since", *holder->joined_at,
                      step);
  }
  await_chief_after(chiefs, replica, wait, why);
  join(replica);
}

// The watch takes the lock, and is made and destroyed without it. `why`: what to say of the wait; empty: why_none().
void SyncTokens::await_chief_after(int64_t chiefs, const Replica& replica, const Wait& wait, const std::string& why) {
  Clock& clock = clock_of(wait);
  const Seconds began = clock.now();
  bool is_cancelled = false;  // guarded by mutex_
  std::optional<Cancellation::Watch> watch;
  if (wait.limits.cancellation != nullptr) {
    watch.emplace(*wait.limits.cancellation, [this, &is_cancelled] {
      MutexLock lock(mutex_);
      is_cancelled = true;
      begun_.notify_all();
    });
  }
  for (Seconds pause = wait.warn_secs; !has_chief_by(chiefs, slice_of(wait, clock, pause), is_cancelled);
       pause = std::min(2 * pause, kLongestPauseOfToken)) {
    if (wait.limits.cancellation != nullptr) wait.limits.cancellation->check();
    const std::string reason = why.empty() ? why_none() : why;
    if (is_over(wait.limits)) throw DeadlineExceededError(fmt::format("{}: {}", replica.worker, reason));
    log_warning("{} waits for the chief since {:.3g} s, and computes nothing before it has set the accumulators: {}",
                replica.worker, (clock.now() - began).count(), reason);
  }
}

bool SyncTokens::has_chief_by(int64_t after, const WaitLimits& slice, const bool& is_cancelled) {
  const NoStepsExpected waiting;  // which is said, and is not for this process to end
  MutexLock lock(mutex_);
  while (chiefs_ <= after && !is_cancelled && slice.clock->now() < slice.deadline) {
    slice.clock->wait_until(begun_, mutex_, slice.deadline);  // wait: a chief, a cancellation and the run's time end it
  }
  return chiefs_ > after;
}

// The watch takes the lock, perhaps at once, so it is made without.
std::shared_ptr<SyncTokens::Holder> SyncTokens::holder_of(const Replica& replica) {
  std::vector<std::shared_ptr<Holder>> ended;
  std::shared_ptr<Holder> holder;
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    ended = take_ended();
    std::shared_ptr<Holder>& found = holders_[{replica.session.get(), replica.holder}];
    is_new = found == nullptr;
    if (is_new) {
      found = std::make_shared<Holder>();
      found->session = replica.session;
      found->chiefs = chiefs_;
      found->worker = replica.worker;
    }
    holder = found;
  }
  if (is_new) {
    holder->end = std::make_unique<Cancellation::Watch>(*replica.session, [this, raw = holder.get()] { end(*raw); });
  }
  for (const auto& other : ended) {
    if (other->gave_back) log_info("{}: its session has ended, and its token has gone to others", other->worker);
  }
  return holder;
}

// They are destroyed without the lock, because of their watches.
std::vector<std::shared_ptr<SyncTokens::Holder>> SyncTokens::take_ended() {
  std::vector<std::shared_ptr<Holder>> ended;
  for (auto it = holders_.begin(); it != holders_.end();) {
    const bool is_ended = it->second->has_ended;
    if (is_ended) ended.push_back(std::move(it->second));
    it = is_ended ? holders_.erase(it) : std::next(it);
  }
  return ended;
}

// Runs under the lock of the session's cancellation.
void SyncTokens::end(Holder& holder) {
  MutexLock lock(mutex_);
  holder.has_ended = true;
  const std::optional<int64_t> token = std::exchange(holder.token, std::nullopt);
  if (!token || holder.chiefs != chiefs_ || (step_ && *token < *step_)) return;
  holder.gave_back = add(*token);
}

// From the moment it looks for a token until it has one, or gives up.
class SyncTokens::Waiting {
 public:
  Waiting(SyncTokens& tokens, Holder& holder) : tokens_(tokens), holder_(holder) {}
  ~Waiting() {
    MutexLock lock(tokens_.mutex_);
    holder_.waits_from.reset();
  }
  Waiting(const Waiting&) = delete;

  // A session that has ended meanwhile has no use for it.
  int64_t keep(int64_t step) {
    MutexLock lock(tokens_.mutex_);
    if (holder_.has_ended) {
      tokens_.add(step);
    } else {
      holder_.token = step;
      holder_.chiefs = tokens_.chiefs_;
    }
    return step;
  }

 private:
  SyncTokens& tokens_;
  Holder& holder_;
};

int64_t SyncTokens::take(const Replica& replica, int64_t local_step, const Wait& wait) {
  if (replica.session == nullptr) return wait_for_token(replica, local_step, wait);
  const std::shared_ptr<Holder> holder = holder_of(replica);
  if (begins_to_share(*holder)) {
    log_warning(
        "{}: two runs of this replica wait for a token at the same time, so that its gradients may count twice. Run "
        "its train operation on one thread; for several, call apply_gradients() once for each, or give each a session",
        replica.worker);
  }
  if (const auto token = begin_take(*holder, local_step)) return *token;
  Waiting waiting(*this, *holder);
  return waiting.keep(wait_for_token(replica, local_step, wait));
}

// True once.
bool SyncTokens::begins_to_share(Holder& holder) {
  MutexLock lock(mutex_);
  return holder.waits_from && !std::exchange(holder.is_shared, true);
}

// The token that is its due without a wait.
std::optional<int64_t> SyncTokens::begin_take(Holder& holder, int64_t local_step) {
  MutexLock lock(mutex_);
  if (holder.chiefs != chiefs_) {
    const bool is_dropped = holder.chiefs < undone_by_ || local_step != first_step_;
    holder.chiefs = chiefs_;
    holder.token.reset();
    if (is_dropped) return holder.token = step_;
  }
  if (holder.token && *holder.token != local_step) return holder.token;
  holder.token.reset();
  holder.waits_from = local_step;
  return std::nullopt;
}

int64_t SyncTokens::wait_for_token(const Replica& replica, int64_t local_step, const Wait& wait) {
  Clock& clock = clock_of(wait);
  const Seconds began = clock.now();
  for (Seconds pause = wait.warn_secs;; pause = std::min(2 * pause, kLongestPauseOfToken)) {
    const WaitLimits slice = slice_of(wait, clock, pause);
    try {
      return step_of_token(queue_->dequeue(slice)[0]);
    } catch (const DeadlineExceededError&) {
      if (is_over(wait.limits)) throw;
    }
    log_warning("{} has pushed its gradients for step {}, and waits for a token since {:.3g} s: {}", replica.worker,
                local_step, (clock.now() - began).count(), why_none());
  }
}

std::string SyncTokens::why_none() const {
  MutexLock lock(mutex_);
  if (chiefs_ == 0) {
    return "no chief has begun. Use a SyncReplicasHook in the chief's session, or run its chief_init_op() and "
           "get_init_tokens_op()";
  }
  if (!has_made_steps_) {
    return fmt::format(
        "the chief has made no step since it began at step {}. Is its queue runner started (SyncReplicasHook does it; "
        "with a Supervisor: start_queue_runners() with get_chief_queue_runner())? Do as many replicas run as are "
        "aggregated?",
        first_step_);
  }
  return fmt::format(
      "step {} is the last that was begun, and its tokens are taken. It ends when enough replicas have pushed: the log "
      "of the task with the variables says whose gradients have come",
      *step_);
}

// Those with which the chief began are not void: they are for the second runs of the replicas, whatever these give.
void SyncTokens::put(int64_t step, int64_t count) {
  MutexLock lock(mutex_);
  std::vector<int64_t> steps = drain();
  std::erase_if(steps, [first = first_step_](int64_t left) { return left != first; });
  steps.insert(steps.end(), static_cast<size_t>(count), step);
  step_ = step;
  has_made_steps_ = true;
  for (const int64_t next : steps) {
    if (!add(next)) throw CancelledError(fmt::format("FIFOQueue '{}' is closed.", queue_->name()));
  }
}

size_t SyncTokens::holders() const {
  MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::count_if(holders_.begin(), holders_.end(), [](const auto& entry) { return !entry.second->has_ended; }));
}

std::shared_ptr<SyncTokens> sync_tokens(ResourceMap& resources, const std::shared_ptr<Queue>& queue) {
  return std::static_pointer_cast<SyncTokens>(
      resources.find_or_make("tokens of " + queue->name(), [&] { return std::make_shared<SyncTokens>(queue); }));
}

}  // namespace longhaul

#include "longhaul/host/queues/queue.h"

#include <fmt/format.h>

#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/base/waiting.h"

namespace longhaul {
namespace {

std::vector<Tensor> stack(std::span<const StoredElement> elements, const QueueSignature& signature) {
  std::vector<Tensor> stacked;
  for (size_t i = 0; i < signature.dtypes.size(); ++i) {
    stacked.push_back(stack_component(elements, i, signature.dtypes[i], signature.shapes[i]));
  }
  return stacked;
}

}  // namespace

Queue::Queue(QueueSpec spec, std::unique_ptr<ElementStore> store)
    : spec_(std::move(spec)), store_(std::move(store)), check_(spec_, store_->by_priority()) {}

bool Queue::has_space() const {
  return spec_.capacity < 0 || store_->size() < static_cast<size_t>(spec_.capacity);
}

bool Queue::has_element() const {
  return store_->size() > (closed_ ? 0 : spec_.min_after_dequeue);
}

bool Queue::try_enqueue(QueueElement& element) {
  check_.check(element);
  MutexLock lock(mutex_);
  if (closed_ || !enqueues_.empty() || !has_space()) return false;
  store_->put(StoredElement(std::move(element)));
  if (!dequeues_.empty()) serve();
  return true;
}

bool Queue::try_dequeue(QueueElement* element) {
  MutexLock lock(mutex_);
  if (!dequeues_.empty() || !has_element()) return false;
  *element = store_->take().components();
  if (!enqueues_.empty()) serve();
  return true;
}

void Queue::enqueue(QueueElement element, const WaitLimits& limits) {
  if (try_enqueue(element)) return;
  PendingEnqueue pending;
  pending.single = std::move(element);
  wait(pending, limits);
}

void Queue::enqueue_many(std::span<const Tensor> components, const WaitLimits& limits) {
  check_.check_rows(components);
  PendingEnqueue pending;
  pending.batch = std::make_shared<const std::vector<Tensor>>(components.begin(), components.end());
  pending.count = components.empty() ? 0 : static_cast<size_t>(components[0].shape().dim(0));
  wait(pending, limits);
}

QueueElement Queue::dequeue(const WaitLimits& limits) {
  QueueElement element;
  if (!try_dequeue(&element)) element = std::move(take(1, /*fewer_will_do=*/false, limits)[0]).components();
  return element;
}

std::vector<Tensor> Queue::dequeue_many(int64_t n, const WaitLimits& limits) {
  return dequeue_stacked(n, /*fewer_will_do=*/false, limits);
}

std::vector<Tensor> Queue::dequeue_up_to(int64_t n, const WaitLimits& limits) {
  return dequeue_stacked(n, /*fewer_will_do=*/true, limits);
}

std::vector<Tensor> Queue::dequeue_stacked(int64_t n, bool fewer_will_do, const WaitLimits& limits) {
  if (n < 0) throw InvalidArgumentError(fmt::format("DequeueMany requested {} < 0 elements", n));
  if (spec_.signature.shapes.empty()) {
    throw InvalidArgumentError(fmt::format(
        "{} '{}': DequeueMany and DequeueUpTo require the components to have specified shapes.", spec_.kind, name()));
  }
  std::vector<StoredElement> elements = n == 0 ? std::vector<StoredElement>() : take(n, fewer_will_do, limits);
  try {
    return stack(elements, spec_.signature);
  } catch (...) {
    MutexLock lock(mutex_);
    store_->put_back(std::move(elements));
    serve();
    throw;
  }
}

std::vector<StoredElement> Queue::take(int64_t n, bool fewer_will_do, const WaitLimits& limits) {
  PendingDequeue pending;
  pending.wanted = static_cast<size_t>(n);
  pending.fewer_will_do = fewer_will_do;
  wait(pending, limits);
  return std::move(pending.taken);
}

// The queue's mutex is not held while the watch is made or destroyed: a cancellation takes them the other way round.
template <typename PendingCall>
void Queue::wait(PendingCall& pending, const WaitLimits& limits) {
  std::optional<Cancellation::Watch> watch;
  if (limits.cancellation != nullptr) {
    watch.emplace(*limits.cancellation, [this, &pending] {
      MutexLock lock(mutex_);
      pending.cancelled = true;
      pending.changed.notify_one();
    });
  }
  {
    MutexLock lock(mutex_);
    try {
      begin(pending);
    } catch (...) {
      if (!pending.done) {
        withdraw(pending);
        throw;
      }
    }
    std::optional<Waiting> waiting;
    if (!pending.done) {
      waiting.emplace(std::is_same_v<PendingCall, PendingEnqueue> ? "room in the queue" : "an element of the queue",
                      name());
    }
    await(pending, limits);
    waiting.reset();
    if (!pending.done) withdraw(pending);
  }
  watch.reset();
  if (pending.error) std::rethrow_exception(pending.error);
  if (pending.done) return;
  if (pending.cancelled) limits.cancellation->check();
  throw DeadlineExceededError(fmt::format("{} '{}': the run timed out while it waited", spec_.kind, name()));
}

void Queue::await(Pending& pending, const WaitLimits& limits) {
  constexpr Seconds kLookAgain{3600};
  Clock& clock = limits.clock == nullptr ? Clock::real() : *limits.clock;
  while (!pending.done && !pending.cancelled) {
    if (limits.deadline.count() <= 0) {
      clock.wait_for(pending.changed, mutex_, kLookAgain);  // wait: other calls, a close and a cancellation end it
      continue;
    }
    if (clock.now() >= limits.deadline) return;
    clock.wait_until(pending.changed, mutex_, limits.deadline);  // wait: the run's time
  }
}

void Queue::begin(PendingEnqueue& pending) {
  if (closed_) {
    return finish(
        pending,
        error_of_end(std::make_exception_ptr(CancelledError(fmt::format("{} '{}' is closed.", spec_.kind, name())))));
  }
  enqueues_.push_back(&pending);
  serve();
}

void Queue::begin(PendingDequeue& pending) {
  dequeues_.push_back(&pending);
  serve();
}

void Queue::withdraw(PendingEnqueue& pending) {
  std::erase(enqueues_, &pending);
  serve();
}

void Queue::withdraw(PendingDequeue& pending) {
  std::erase(dequeues_, &pending);
  store_->put_back(std::move(pending.taken));
  serve();
}

void Queue::serve() {
  bool progress = true;
  while (progress) {
    progress = serve_enqueues();
    progress |= serve_dequeues();
  }
}

bool Queue::serve_enqueues() {
  bool progress = false;
  while (!enqueues_.empty()) {
    PendingEnqueue& first = *enqueues_.front();
    std::exception_ptr error;
    try {
      for (; first.next < first.count && has_space(); ++first.next, progress = true) {
        store_->put(first.element(first.next));
      }
    } catch (...) {  // that call's alone, not of the one that serves it
      error = std::current_exception();
    }
    if (!error && first.next < first.count) return progress;
    enqueues_.pop_front();
    finish(first, std::move(error));
  }
  return progress;
}

bool Queue::serve_dequeues() {
  bool progress = false;
  while (!dequeues_.empty()) {
    PendingDequeue& first = *dequeues_.front();
    for (; first.taken.size() < first.wanted && has_element(); progress = true) {
      first.taken.emplace_back();  // before the element leaves the store: memory may run out
      first.taken.back() = store_->take();
    }
    const bool enough = first.taken.size() == first.wanted;
    if (!enough && !(closed_ && enqueues_.empty())) return progress;
    dequeues_.pop_front();
    if (enough || (first.fewer_will_do && !first.taken.empty())) {
      finish(first);
    } else {
      end_of_elements(first);
    }
  }
  return progress;
}

void Queue::end_of_elements(PendingDequeue& pending) {
  store_->put_back(std::move(pending.taken));
  finish(pending, error_of_end(std::make_exception_ptr(OutOfRangeError(
                      fmt::format("{} '{}' is closed and has insufficient elements (requested {}, current size {})",
                                  spec_.kind, name(), pending.wanted, store_->size())))));
}

std::exception_ptr Queue::error_of_end(const std::exception_ptr& if_closed) const {
  if (why_dropped_.empty()) return if_closed;
  return std::make_exception_ptr(AbortedError(fmt::format("{} '{}': {}", spec_.kind, name(), why_dropped_)));
}

// Under the lock: the call may return, and be gone, as soon as that is free.
void Queue::finish(Pending& pending, std::exception_ptr error) {
  pending.error = std::move(error);
  pending.done = true;
  pending.changed.notify_one();
}

void Queue::close(bool cancel_pending_enqueues) {
  MutexLock lock(mutex_);
  closed_ = true;
  if (cancel_pending_enqueues) {
    for (PendingEnqueue* pending : enqueues_) {
      finish(*pending, std::make_exception_ptr(CancelledError(
                           fmt::format("{} '{}': Enqueue operation was cancelled", spec_.kind, name()))));
    }
    enqueues_.clear();
  }
  serve();
}

// Not even a dequeue that the remaining elements would serve gets them: nobody knows of them any more.
void Queue::drop(const std::string& why) {
  MutexLock lock(mutex_);
  closed_ = true;
  why_dropped_ = why;
  const std::exception_ptr error = error_of_end(nullptr);
  for (PendingEnqueue* pending : enqueues_) finish(*pending, error);
  for (PendingDequeue* pending : dequeues_) finish(*pending, error);
  enqueues_.clear();
  dequeues_.clear();
}

bool Queue::is_closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

size_t Queue::size() const {
  MutexLock lock(mutex_);
  return store_->size();
}

size_t Queue::waiting() const {
  MutexLock lock(mutex_);
  return enqueues_.size() + dequeues_.size();
}

}  // namespace longhaul

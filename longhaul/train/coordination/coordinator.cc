#include "longhaul/train/coordination/coordinator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/base/waiting.h"

namespace longhaul {
namespace {

template <typename Container, typename T>
bool contains(const Container& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

CoordinatedThread::CoordinatedThread(std::string name, std::shared_ptr<Signal> signal)
    : name_(std::move(name)), signal_(std::move(signal)) {}

CoordinatedThread::~CoordinatedThread() NO_THREAD_SAFETY_ANALYSIS {
  // The last to let go of a thread that nobody joined is that thread itself.
  if (thread_.joinable()) thread_.detach();
}

bool CoordinatedThread::finished() const {
  MutexLock lock(signal_->mutex);
  return finished_;
}

void CoordinatedThread::finish() {
  std::vector<std::weak_ptr<Signal>> waiting;
  {
    MutexLock lock(signal_->mutex);
    finished_ = true;
    waiting.swap(waiting_);
    signal_->note_change();
  }
  for (const auto& weak : waiting) {
    const std::shared_ptr<Signal> other = weak.lock();
    if (other == nullptr) continue;
    MutexLock lock(other->mutex);
    other->note_change();
  }
}

// One that has ended already is found so by whoever looks afterwards.
void CoordinatedThread::notify_at_end(const std::shared_ptr<Signal>& waiting) {
  if (waiting == signal_) return;
  MutexLock lock(signal_->mutex);
  if (!finished_) waiting_.push_back(waiting);
}

void CoordinatedThread::Signal::note_change() {
  ++changes;
  changed.notify_all();
}

// Threads hold the coordinator, not the other way round once they have ended: nothing here is a cycle.
struct Coordinator::State {
  using Reasons = std::set<std::weak_ptr<const void>, std::owner_less<std::weak_ptr<const void>>>;

  CleanStop clean_stop;
  Clock* clock;
  std::shared_ptr<CoordinatedThread::Signal> signal = std::make_shared<CoordinatedThread::Signal>();
  std::shared_ptr<const State> parent;  // null: it is no child
  std::atomic<bool> stop{false};        // written under the mutex, so that waits do not miss it

  bool joined GUARDED_BY(signal->mutex) = false;
  int joining GUARDED_BY(signal->mutex) = 0;  // calls of join() that wait
  std::exception_ptr error GUARDED_BY(signal->mutex);
  Threads threads GUARDED_BY(signal->mutex);
  std::vector<std::weak_ptr<State>> children GUARDED_BY(signal->mutex);
  Reasons reasons GUARDED_BY(signal->mutex);  // for a stop that lasts

  void wake_children() const;
  uint64_t changes() const;
  void wait_for_change(uint64_t seen, std::optional<Seconds> deadline) const;
};

// A join() that waits, of which threads in wait_for_join() are told.
class Coordinator::Joining {
 public:
  explicit Joining(State& state) : state_(state) {
    MutexLock lock(state_.signal->mutex);
    ++state_.joining;
    state_.signal->note_change();
  }
  ~Joining() {
    MutexLock lock(state_.signal->mutex);
    --state_.joining;
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

 private:
  State& state_;
};

// Those that look at the stop under their own mutex have either seen it, or wait for this.
void Coordinator::State::wake_children() const {
  std::vector<std::weak_ptr<State>> all;
  {
    MutexLock lock(signal->mutex);
    all = children;
  }
  for (const auto& weak : all) {
    const std::shared_ptr<State> child = weak.lock();
    if (child == nullptr) continue;
    {
      MutexLock lock(child->signal->mutex);
      child->signal->note_change();
    }
    child->wake_children();
  }
}

// Stops, ends of threads and notifications so far. Who asks before it looks at them misses none.
uint64_t Coordinator::State::changes() const {
  MutexLock lock(signal->mutex);
  return signal->changes;
}

// Since `seen`. May return early.
void Coordinator::State::wait_for_change(uint64_t seen, std::optional<Seconds> deadline) const {
  MutexLock lock(signal->mutex);
  if (signal->changes != seen) return;
  if (deadline) {
    clock->wait_until(signal->changed, signal->mutex, *deadline);  // wait: the caller's limit
  } else {
    signal->changed.wait(signal->mutex);  // wait: a stop, the end of a thread and notify() end it
  }
}

Coordinator::Coordinator(CoordinatorOptions options) : state_(std::make_shared<State>()) {
  state_->clean_stop = options.clean_stop ? std::move(options.clean_stop) : clean_stop_types<OutOfRangeError>();
  state_->clock = options.clock;
}

Coordinator Coordinator::child(CoordinatorOptions options) const {
  Coordinator child(std::move(options));
  child.state_->parent = state_;
  MutexLock lock(state_->signal->mutex);
  std::erase_if(state_->children, [](const auto& other) { return other.expired(); });
  state_->children.push_back(child.state_);
  return child;
}

bool Coordinator::should_stop() const {
  for (const State* state = state_.get(); state != nullptr; state = state->parent.get()) {
    if (state->stop.load(std::memory_order_acquire)) return true;
  }
  return false;
}

void Coordinator::request_stop(std::exception_ptr error) const {
  if (error && state_->clean_stop(error)) error = nullptr;
  if (error && should_stop() && code_of(error) == Code::kCancelled) {
    log_debug("cancelled by the stop: {}", message_of(error));
    error = nullptr;
  }
  const bool is_too_late = !note_stop(error);
  if (error) log_reported(error);  // after the stop: the log may block
  if (is_too_late) std::rethrow_exception(error);
}

// False: the error would not be reported any more, because join() has returned.
bool Coordinator::note_stop(const std::exception_ptr& error) const {
  {
    MutexLock lock(state_->signal->mutex);
    if (state_->joined && error) return false;
    if (!state_->error) state_->error = error;
    state_->stop.store(true, std::memory_order_release);
    state_->signal->note_change();
  }
  state_->wake_children();
  return true;
}

void Coordinator::request_stop_while(const std::weak_ptr<const void>& reason) const {
  {
    MutexLock lock(state_->signal->mutex);
    state_->reasons.insert(reason);
  }
  request_stop();
}

void Coordinator::notify() const {
  MutexLock lock(state_->signal->mutex);
  state_->signal->note_change();
}

void Coordinator::log_reported(const std::exception_ptr& error) const {
  log_info("Error reported to Coordinator: {}, {}", code_name(code_of(error)), message_of(error));
}

bool Coordinator::wait_for_stop(Seconds timeout) const {
  return wait_for_stop_until(state_->clock->now() + timeout);  // wait: wait_for_stop() itself
}

bool Coordinator::wait_for_stop_until(Seconds time) const {
  const Waiting waiting("its next turn, or a stop");
  MutexLock lock(state_->signal->mutex);
  while (!should_stop()) {
    const Seconds left = time - state_->clock->now();
    if (left <= Seconds{0}) return false;
    state_->clock->wait_for(state_->signal->changed, state_->signal->mutex, left);  // wait: the caller's limit
  }
  return true;
}

void Coordinator::wait_for_stop() const {
  const Waiting waiting("a stop");
  MutexLock lock(state_->signal->mutex);
  while (!should_stop()) state_->signal->changed.wait(state_->signal->mutex);  // wait: request_stop() ends it
}

bool Coordinator::wait_for_stop_or(const std::function<bool()>& is_due, std::optional<Seconds> timeout) const {
  const Waiting waiting("its next turn, or a stop");
  std::optional<Seconds> deadline;
  if (timeout) deadline = state_->clock->now() + *timeout;
  while (true) {
    const uint64_t seen = state_->changes();
    if (should_stop()) return true;
    if (is_due() || (deadline && state_->clock->now() >= *deadline)) return false;
    state_->wait_for_change(seen, deadline);
  }
}

bool Coordinator::wait_for_join(Seconds timeout) const {
  const Seconds deadline = state_->clock->now() + timeout;
  MutexLock lock(state_->signal->mutex);
  while (should_stop() && !state_->joined && state_->joining == 0) {
    const Seconds left = deadline - state_->clock->now();
    if (left <= Seconds{0}) return false;
    state_->clock->wait_for(state_->signal->changed, state_->signal->mutex, left);  // wait: the caller's limit
  }
  return true;
}

bool Coordinator::stop_on_exception(const std::function<void()>& body) const {
  try {
    body();
    return true;
  } catch (...) {
    request_stop(std::current_exception());
    return false;
  }
}

std::shared_ptr<CoordinatedThread> Coordinator::register_thread(std::string name) const {
  std::shared_ptr<CoordinatedThread> thread(new CoordinatedThread(std::move(name), state_->signal));
  MutexLock lock(state_->signal->mutex);
  state_->threads.push_back(thread);
  return thread;
}

std::shared_ptr<CoordinatedThread> Coordinator::start_thread(std::string name, std::function<void()> body) const {
  const std::shared_ptr<CoordinatedThread> thread = register_thread(name);
  // A stop requested after a join comes back as an exception: it was reported, and there is no one to tell.
  auto run = [coord = *this, thread, body = std::move(body)]() mutable {
    try {
      coord.stop_on_exception(body);
    } catch (...) {
      log_error("thread {} failed after its coordinator was joined: {}", thread->name(),
                message_of(std::current_exception()));
    }
    body = nullptr;  // what it holds is let go before the thread counts as finished
    thread->finish();
  };
  try {
    MutexLock lock(thread->signal_->mutex);
    thread->thread_ = NamedThread(std::move(name), std::move(run));
  } catch (const std::exception& error) {
    thread->finish();
    throw ResourceExhaustedError(fmt::format("thread {} cannot be started: {}", thread->name(), error.what()));
  }
  return thread;
}

void Coordinator::refuse_own_threads(const Threads& threads) const {
  for (const auto& thread : threads) {
    MutexLock lock(thread->signal_->mutex);
    if (thread->thread_.is_current()) {
      throw FailedPreconditionError("thread " + thread->name() +
                                    " cannot join itself: call join() from another thread");
    }
  }
}

// Returns those that still run after the grace period, or when it was given up.
Coordinator::Threads Coordinator::wait_for_threads(const Threads& threads, const JoinOptions& options,
                                                   bool* gave_up) const {
  for (const auto& thread : threads) thread->notify_at_end(state_->signal);
  std::optional<Seconds> deadline;
  while (true) {
    const uint64_t seen = state_->changes();
    Threads running;
    std::copy_if(threads.begin(), threads.end(), std::back_inserter(running), [](auto& t) { return !t->finished(); });
    if (running.empty()) return running;
    if (should_stop() && !deadline) deadline = state_->clock->now() + options.stop_grace;
    std::optional<Seconds> until = deadline;
    const std::optional<Seconds> give_up = deadline && options.give_up_at ? options.give_up_at() : std::nullopt;
    if (give_up) until = std::min(*deadline, *give_up);
    const Seconds now = state_->clock->now();  // after the question, whose answer may be "now"
    *gave_up = give_up && now >= *give_up;
    if (until && now >= *until) return running;
    state_->wait_for_change(seen, until);
  }
}

void Coordinator::join(const JoinOptions& options, const Threads& also) const {
  Threads threads = also;
  {
    MutexLock lock(state_->signal->mutex);
    threads.insert(threads.end(), state_->threads.begin(), state_->threads.end());
  }
  refuse_own_threads(threads);
  const Joining joining(*state_);
  bool gave_up = false;
  const Threads stragglers = wait_for_threads(threads, options, &gave_up);
  for (const auto& thread : threads) {
    NamedThread done;  // joins when the lock is gone
    MutexLock lock(thread->signal_->mutex);
    if (thread->finished_) std::swap(done, thread->thread_);
  }
  std::vector<std::string> names;
  for (const auto& thread : stragglers) names.push_back(thread->name());
  {
    MutexLock lock(state_->signal->mutex);
    state_->joined = true;
    const Threads& kept = gave_up ? stragglers : Threads();
    std::erase_if(state_->threads, [&](auto& t) { return contains(threads, t) && !contains(kept, t); });
    if (state_->error) std::rethrow_exception(state_->error);
  }
  if (names.empty()) return;
  const std::string message = fmt::format("Coordinator stopped with threads still running: {}", fmt::join(names, " "));
  if (!options.ignore_live_threads && !gave_up) throw DeadlineExceededError(message);
  log_info("{}", message);
}

std::vector<std::string> Coordinator::running() const {
  Threads threads;
  {
    MutexLock lock(state_->signal->mutex);
    threads = state_->threads;
  }
  std::vector<std::string> names;
  for (const auto& thread : threads) {
    if (!thread->finished()) names.push_back(thread->name());
  }
  return names;
}

bool Coordinator::joined() const {
  MutexLock lock(state_->signal->mutex);
  return state_->joined;
}

void Coordinator::clear_stop() const {
  MutexLock lock(state_->signal->mutex);
  state_->joined = false;
  state_->error = nullptr;
  std::erase_if(state_->reasons, [](const auto& reason) { return reason.expired(); });
  state_->stop.store(!state_->reasons.empty(), std::memory_order_release);
}

void Coordinator::raise_requested_exception() const {
  if (const std::exception_ptr error = reported_error()) std::rethrow_exception(error);
}

std::exception_ptr Coordinator::reported_error() const {
  MutexLock lock(state_->signal->mutex);
  return state_->error;
}

Clock& Coordinator::clock() const {
  return *state_->clock;
}

}  // namespace longhaul

#include "longhaul/cluster/wire/run_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/cluster/transport/message.h"

namespace longhaul {
namespace {

uint64_t bytes_of_answer(const std::vector<Tensor>& values) {
  Message message;
  std::copy_if(values.begin(), values.end(), std::back_inserter(message.tensors),
               [](const Tensor& value) { return value.defined(); });
  return message.tensor_bytes();
}

}  // namespace

// One who asks for an answer, until he has it or has gone.
class RunOnce::Asking {
 public:
  Asking(RunOnce& once, AnswerPtr answer, Cancellation* cancellation) : once_(once), answer_(std::move(answer)) {
    if (cancellation != nullptr) gone_.emplace(*cancellation, [this] { leave(); });
  }
  ~Asking() {
    gone_.reset();
    leave();
  }
  Asking(const Asking&) = delete;

  const bool& has_left() const { return has_left_; }  // guarded by the mutex of `once`

 private:
  void leave() {
    {
      MutexLock lock(once_.mutex_);
      if (std::exchange(has_left_, true)) return;
      once_.changed_.notify_all();
      if (--answer_->asking > 0 || answer_->is_over) return;
    }
    answer_->end.cancel("the client has gone, or no longer waits for the answer");
  }

  RunOnce& once_;
  const AnswerPtr answer_;
  bool has_left_ = false;
  std::optional<Cancellation::Watch> gone_;
};

RunOnce::Values RunOnce::call(const std::string& client, uint64_t number, const WaitLimits& limits, const Run& run) {
  if (number == 0) return run(limits.cancellation);
  for (;;) {
    if (limits.cancellation != nullptr) limits.cancellation->check();
    bool is_new = false;
    const AnswerPtr answer = begin({client, number}, is_new);
    const Asking asking(*this, answer, limits.cancellation);
    if (is_new) return make(answer, run);
    if (auto values = answer_of(*answer, limits, asking.has_left())) return *std::move(values);
  }
}

RunOnce::AnswerPtr RunOnce::begin(const Key& key, bool& is_new) {
  MutexLock lock(mutex_);
  AnswerPtr& answer = calls_[key];
  is_new = answer == nullptr;
  if (is_new) answer = std::make_shared<Answer>();
  const AnswerPtr found = answer;  // forget_oldest() may change the map
  ++found->asking;
  if (!is_new) return found;
  found->key = key;
  oldest_.push_back(found);
  forget_oldest();
  return found;
}

// One that is under way stays known: it moves to the end.
void RunOnce::forget_oldest() {
  for (size_t above = oldest_.size() - std::min(oldest_.size(), most_calls_); above > 0; --above) {
    const AnswerPtr answer = oldest_.front();
    oldest_.pop_front();
    const auto known = calls_.find(answer->key);
    if (known == calls_.end() || known->second != answer) continue;  // its client has gone
    if (!answer->is_over) {
      oldest_.push_back(answer);
      continue;
    }
    drop_values(*answer);
    calls_.erase(known);
  }
}

void RunOnce::drop_values(Answer& answer) {
  bytes_ -= answer.bytes;
  if (answer.bytes > 0) answer.is_dropped = true;
  answer.bytes = 0;
  answer.values.clear();
}

// Those of a client that has gone are for whoever waits for them.
void RunOnce::keep_values(const AnswerPtr& answer, const Values& values) {
  const uint64_t bytes = bytes_of_answer(values);
  answer->is_dropped = bytes > most_bytes_;
  if (answer->is_dropped) return;
  answer->values = values;
  const auto known = calls_.find(answer->key);
  if (bytes == 0 || known == calls_.end() || known->second != answer) return;
  answer->bytes = bytes;
  bytes_ += bytes;
  kept_.push_back(answer);
  while (bytes_ > most_bytes_ || kept_.front()->bytes == 0) {
    drop_values(*kept_.front());
    kept_.pop_front();
  }
}

RunOnce::Values RunOnce::make(const AnswerPtr& answer, const Run& run) {
  Values values;
  std::exception_ptr error;
  try {
    values = run(&answer->end);
  } catch (...) {
    error = std::current_exception();
  }
  {
    MutexLock lock(mutex_);
    answer->is_over = true;
    answer->error = error;
    if (code_of(error) == Code::kCancelled && failed_step_of(error).fate == StepFate::kNotCommitted) withdraw(answer);
    keep_values(answer, values);
    changed_.notify_all();
  }
  if (error != nullptr) std::rethrow_exception(error);
  return values;
}

// Whoever waits for it asks anew.
void RunOnce::withdraw(const AnswerPtr& answer) {
  answer->is_withdrawn = true;
  const auto known = calls_.find(answer->key);
  if (known != calls_.end() && known->second == answer) calls_.erase(known);
}

void RunOnce::await(const Answer& answer, Seconds deadline, const bool& has_left) {
  constexpr Seconds kHour{3600};
  while (!answer.is_over && !has_left) {
    if (deadline.count() != 0 && clock_.now() >= deadline)
      throw DeadlineExceededError(fmt::format("call {} of client {} is still under way: ask for it again",
                                              answer.key.second, answer.key.first));
    // wait: for the thread that makes the run, a cancel, the deadline
    clock_.wait_until(changed_, mutex_, deadline.count() != 0 ? deadline : clock_.now() + kHour);
  }
}

// The mutex is not held while the cancellation is asked: that calls us with its own held.
std::optional<RunOnce::Values> RunOnce::answer_of(const Answer& answer, const WaitLimits& limits,
                                                  const bool& has_left) {
  {
    MutexLock lock(mutex_);
    await(answer, limits.deadline, has_left);
    if (answer.is_withdrawn) return std::nullopt;
    if (answer.is_over) return values_of(answer);
  }
  limits.cancellation->check();
  return std::nullopt;
}

RunOnce::Values RunOnce::values_of(const Answer& answer) const {
  if (answer.error != nullptr) std::rethrow_exception(answer.error);
  if (!answer.is_dropped) return answer.values;
  throw AbortedError(fmt::format(
      "The same RunStep (Master) request was received twice. Call {} of client {} was made, but its values are no "
      "longer here: at most {} bytes of answers are kept. Read them by a run that writes nothing",
      answer.key.second, answer.key.first, most_bytes_));
}

RunOnce::Known RunOnce::ask(const std::string& client, uint64_t number) const {
  MutexLock lock(mutex_);
  const auto found = calls_.find({client, number});
  if (found == calls_.end()) return Known::kNever;
  const Answer& answer = *found->second;
  if (!answer.is_over) return Known::kUnderWay;
  return answer.error == nullptr ? Known::kSucceeded : Known::kFailed;
}

void RunOnce::forget(const std::string& client) {
  MutexLock lock(mutex_);
  for (auto call = calls_.lower_bound({client, 0}); call != calls_.end() && call->first.first == client;) {
    drop_values(*call->second);
    call = calls_.erase(call);
  }
}

size_t RunOnce::calls() const {
  MutexLock lock(mutex_);
  return calls_.size();
}

}  // namespace longhaul

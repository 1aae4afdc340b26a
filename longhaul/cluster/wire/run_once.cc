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

// Whether the run was cancelled by its caller, and may be made again.
bool is_withdrawal(const std::exception_ptr& error, const WaitLimits& limits) {
  if (code_of(error) != Code::kCancelled || limits.cancellation == nullptr || !limits.cancellation->cancelled())
    return false;
  const StepFate fate = failed_step_of(error).fate;
  return fate == StepFate::kNotTold || fate == StepFate::kNotCommitted;
}

}  // namespace

RunOnce::Values RunOnce::call(const std::string& client, uint64_t number, const WaitLimits& limits,
                              const std::function<Values()>& run) {
  if (number == 0) return run();
  for (;;) {
    bool is_new = false;
    const AnswerPtr answer = begin({client, number}, is_new);
    if (is_new) return make(answer, limits, run);
    if (auto values = answer_of(*answer, limits)) return *std::move(values);
  }
}

RunOnce::AnswerPtr RunOnce::begin(const Key& key, bool& is_new) {
  MutexLock lock(mutex_);
  AnswerPtr& answer = calls_[key];
  is_new = answer == nullptr;
  if (!is_new) return answer;
  const AnswerPtr made = answer = std::make_shared<Answer>(Answer{.key = key});
  oldest_.push_back(made);
  forget_oldest();
  return made;
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

RunOnce::Values RunOnce::make(const AnswerPtr& answer, const WaitLimits& limits, const std::function<Values()>& run) {
  Values values;
  std::exception_ptr error;
  try {
    values = run();
  } catch (...) {
    error = std::current_exception();
  }
  {
    MutexLock lock(mutex_);
    answer->is_over = true;
    answer->error = error;
    if (is_withdrawal(error, limits)) withdraw(answer);
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

void RunOnce::await(const Answer& answer, Seconds deadline, const bool& is_cancelled) {
  constexpr Seconds kHour{3600};
  while (!answer.is_over && !is_cancelled) {
    if (deadline.count() != 0 && clock_.now() >= deadline)
      throw DeadlineExceededError(fmt::format("call {} of client {} is still under way: ask for it again",
                                              answer.key.second, answer.key.first));
    // wait: for the thread that makes the run, a cancel, the deadline
    clock_.wait_until(changed_, mutex_, deadline.count() != 0 ? deadline : clock_.now() + kHour);
  }
}

// The mutex is not held while the cancellation is asked: that calls us with its own held.
std::optional<RunOnce::Values> RunOnce::answer_of(const Answer& answer, const WaitLimits& limits) {
  bool is_cancelled = false;  // guarded by mutex_
  std::optional<Cancellation::Watch> wake;
  if (limits.cancellation != nullptr)
    wake.emplace(*limits.cancellation, [&] {
      MutexLock lock(mutex_);
      is_cancelled = true;
      changed_.notify_all();
    });
  {
    MutexLock lock(mutex_);
    await(answer, limits.deadline, is_cancelled);
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

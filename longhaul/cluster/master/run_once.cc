#include "longhaul/cluster/master/run_once.h"

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

RunOnce::Values RunOnce::call(const std::string& client, uint64_t number, const WaitLimits& limits,
                              const std::function<Values()>& run) {
  if (number == 0) return run();
  bool is_new = false;
  const std::shared_ptr<Answer> answer = begin(client, number, is_new);
  return is_new ? make(*answer, run) : answer_of(client, *answer, limits);
}

std::shared_ptr<RunOnce::Answer> RunOnce::begin(const std::string& client, uint64_t number, bool& is_new) {
  MutexLock lock(mutex_);
  std::shared_ptr<Answer>& last = last_[client];
  if (last != nullptr && last->number > number)
    throw AbortedError(
        fmt::format("The same RunStep (Master) request was received twice. It is call {} of client {}, which has since "
                    "made call {}",
                    number, client, last->number));
  is_new = last == nullptr || last->number < number;
  if (is_new) last = std::make_shared<Answer>(Answer{.number = number});
  return last;
}

RunOnce::Values RunOnce::make(Answer& answer, const std::function<Values()>& run) {
  Values values;
  std::exception_ptr error;
  try {
    values = run();
  } catch (...) {
    error = std::current_exception();
  }
  {
    MutexLock lock(mutex_);
    answer.is_over = true;
    answer.error = error;
    answer.is_dropped = bytes_of_answer(values) > most_bytes_;
    if (!answer.is_dropped) answer.values = values;
    changed_.notify_all();
  }
  if (error != nullptr) std::rethrow_exception(error);
  return values;
}

RunOnce::Values RunOnce::answer_of(const std::string& client, const Answer& answer, const WaitLimits& limits) {
  constexpr Seconds kHour{3600};
  std::optional<Cancellation::Watch> wake;
  if (limits.cancellation != nullptr)
    wake.emplace(*limits.cancellation, [this] {
      MutexLock lock(mutex_);
      changed_.notify_all();
    });
  MutexLock lock(mutex_);
  while (!answer.is_over) {
    if (limits.cancellation != nullptr) limits.cancellation->check();
    if (limits.deadline.count() != 0 && clock_.now() >= limits.deadline)
      throw DeadlineExceededError(
          fmt::format("call {} of client {} is still under way: ask for it again", answer.number, client));
    // wait: for the thread that makes the run, a cancel, the deadline
    clock_.wait_until(changed_, mutex_, limits.deadline.count() != 0 ? limits.deadline : clock_.now() + kHour);
  }
  if (answer.error != nullptr) std::rethrow_exception(answer.error);
  if (!answer.is_dropped) return answer.values;
  throw FailedPreconditionError(fmt::format(
      "call {} of client {} was made, but its values are no longer here: an answer of more than {} bytes is "
      "not kept. Read them by a run that writes nothing",
      answer.number, client, most_bytes_));
}

RunOnce::Known RunOnce::ask(const std::string& client, uint64_t number) const {
  MutexLock lock(mutex_);
  const auto found = last_.find(client);
  if (found == last_.end() || found->second->number < number) return Known::kNever;
  const Answer& answer = *found->second;
  if (answer.number > number) return Known::kForgotten;
  if (!answer.is_over) return Known::kUnderWay;
  return answer.error == nullptr ? Known::kSucceeded : Known::kFailed;
}

void RunOnce::forget(const std::string& client) {
  MutexLock lock(mutex_);
  last_.erase(client);
}

size_t RunOnce::clients() const {
  MutexLock lock(mutex_);
  return last_.size();
}

}  // namespace longhaul

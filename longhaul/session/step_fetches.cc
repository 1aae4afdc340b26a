#include "longhaul/session/step_fetches.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace longhaul {
namespace {

// One request for the outputs of all, which gives each its own.
std::shared_ptr<const StepFetch> all_in_one(const std::vector<std::shared_ptr<const StepFetch>>& requests) {
  auto all = std::make_shared<StepFetch>();
  for (const auto& one : requests) all->fetches.insert(all->fetches.end(), one->fetches.begin(), one->fetches.end());
  all->done = [requests](std::vector<Tensor> values, const std::exception_ptr& error) {
    auto first = values.begin();
    for (const auto& one : requests) {
      if (error) {
        deliver(*one, {}, error);
        continue;
      }
      const auto end = first + static_cast<std::ptrdiff_t>(one->fetches.size());
      deliver(*one, std::vector<Tensor>(first, end), nullptr);
      first = end;
    }
  };
  return all;
}

}  // namespace

void StepFetches::request_step_fetch(StepFetch request) {
  auto due = std::make_shared<const StepFetch>(std::move(request));
  MutexLock lock(mutex_);
  const auto before =
      std::find_if(due_.begin(), due_.end(), [&](const auto& one) { return one->requester == due->requester; });
  if (before == due_.end()) {
    due_.push_back(std::move(due));
  } else {
    before->swap(due);  // the previous one is destroyed without the lock
  }
  is_any_due_ = true;
}

void StepFetches::withdraw_step_fetch(const void* requester) {
  Requests withdrawn;
  MutexLock lock(mutex_);
  const auto first =
      std::stable_partition(due_.begin(), due_.end(), [&](const auto& one) { return one->requester != requester; });
  withdrawn.assign(first, due_.end());
  due_.erase(first, due_.end());
  is_any_due_ = !due_.empty();
}

void StepFetches::withdraw_all() {
  Requests withdrawn;
  MutexLock lock(mutex_);
  due_.swap(withdrawn);
  is_any_due_ = false;
}

StepFetches::Requests StepFetches::take_those_that_go_along(const Session::Request& step) {
  MutexLock lock(mutex_);
  const auto first =
      std::stable_partition(due_.begin(), due_.end(), [&](const auto& one) { return !goes_along(one->fetches, step); });
  Requests taken(first, due_.end());
  due_.erase(first, due_.end());
  is_any_due_ = !due_.empty();
  // In one order, whoever asked first: the session compiles a plan for each that there is.
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return std::less<>()(a->requester, b->requester); });
  return taken;
}

std::shared_ptr<const StepFetch> StepFetches::take(const Session::Request& step) {
  const Requests taken = take_those_that_go_along(step);
  if (taken.empty()) return nullptr;
  return taken.size() == 1 ? taken.front() : all_in_one(taken);
}

}  // namespace longhaul

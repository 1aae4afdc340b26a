#include "longhaul/cluster/exchange/step_store.h"

#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

StepStore::Step& StepStore::open(int64_t step, Seconds now) {
  const auto [at, is_new] = steps_.try_emplace(step);
  if (is_new) unclaimed_.emplace_back(now + options_.unclaimed, step);
  counts_.steps = steps_.size();
  return at->second;
}

std::exception_ptr StepStore::deliver(int64_t step, int32_t bundle, const IncomingCall::Caller& sender, Message message,
                                      DeliveryAnswer answer, Seconds now) {
  end_unclaimed(now);
  if (is_over(step) || error_of(step) != nullptr) {
    ++counts_.dropped;
    answers_.emplace_back(std::move(answer), true);
    return nullptr;
  }
  Step& to = open(step, now);
  const auto [at, is_new] = to.bundles.try_emplace(bundle);
  Delivery& delivery = at->second;
  if (is_new) {
    delivery = {.sender = sender, .tensors = std::move(message.tensors)};
    delivery.bytes = Message{{}, delivery.tensors}.tensor_bytes();
    ++counts_.delivered;
    ++counts_.bundles;
    counts_.bytes += delivery.bytes;
  } else if (delivery.sender.incarnation != sender.incarnation) {
    return wrong_incarnation("Deliver", sender.task, delivery.sender.incarnation, sender.incarnation);
  } else {
    ++counts_.repeated;
  }
  answer_or_wait(to, delivery, std::move(answer));
  return nullptr;
}

void StepStore::answer_or_wait(const Step& step, Delivery& delivery, DeliveryAnswer answer) {
  if (delivery.is_taken || step.receivers > 0 || counts_.bytes <= options_.max_buffered) {
    answers_.emplace_back(std::move(answer), false);
  } else {
    delivery.waiting.push_back(std::move(answer));
    ++counts_.unanswered;
  }
}

bool StepStore::begin(int64_t step, Seconds now) {
  if (is_over(step)) return false;
  open(step, now).has_begun = true;
  end_unclaimed(now);
  return true;
}

void StepStore::add_receiver(int64_t step, int by) {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  found->second.receivers += by;
  if (found->second.receivers == 0) return;
  for (auto& [bundle, delivery] : found->second.bundles) answer(delivery, false);
}

const StepStore::Delivery* StepStore::find(int64_t step, int32_t bundle) const {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return nullptr;
  const auto delivery = found->second.bundles.find(bundle);
  return delivery == found->second.bundles.end() ? nullptr : &delivery->second;
}

bool StepStore::has(int64_t step, int32_t bundle) const {
  const Delivery* const delivery = find(step, bundle);
  return delivery != nullptr && !delivery->is_taken;
}

bool StepStore::was_taken(int64_t step, int32_t bundle) const {
  const Delivery* const delivery = find(step, bundle);
  return delivery != nullptr && delivery->is_taken;
}

std::vector<Tensor> StepStore::take(int64_t step, int32_t bundle) {
  Delivery& delivery = steps_.at(step).bundles.at(bundle);
  std::vector<Tensor> tensors = std::move(delivery.tensors);
  count_taken(delivery);
  answer(delivery, false);
  answer_if_room();
  return tensors;
}

void StepStore::count_taken(Delivery& delivery) {
  if (delivery.is_taken) return;
  delivery.is_taken = true;
  --counts_.bundles;
  counts_.bytes -= delivery.bytes;
}

void StepStore::answer(Delivery& delivery, bool is_over) {
  counts_.unanswered -= delivery.waiting.size();
  for (DeliveryAnswer& answer : delivery.waiting) answers_.emplace_back(std::move(answer), is_over);
  delivery.waiting.clear();
}

void StepStore::answer_if_room() {
  if (counts_.unanswered == 0 || counts_.bytes > options_.max_buffered) return;
  for (auto& [number, step] : steps_) {
    for (auto& [bundle, delivery] : step.bundles) answer(delivery, false);
  }
}

void StepStore::abort(int64_t step, std::exception_ptr error, Seconds now) {
  if (is_over(step)) return;
  Step& aborted = open(step, now);
  if (aborted.error == nullptr || (is_consequence(aborted.error) && !is_consequence(error))) {
    aborted.error = std::move(error);
  }
  drop(aborted);
}

void StepStore::abort_all(const std::exception_ptr& error) {
  for (auto& [number, step] : steps_) {
    if (step.error == nullptr) step.error = error;
    drop(step);
  }
}

std::exception_ptr StepStore::error_of(int64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : found->second.error;
}

void StepStore::drop(Step& step) {
  for (auto& [bundle, delivery] : step.bundles) {
    count_taken(delivery);
    answer(delivery, true);
  }
  step.bundles.clear();
  answer_if_room();
}

void StepStore::end(int64_t step) {
  over_.add(step);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  drop(found->second);
  steps_.erase(found);
  counts_.steps = steps_.size();
}

void StepStore::end_unclaimed(Seconds now) {
  while (!unclaimed_.empty() && unclaimed_.front().first <= now) {
    const int64_t step = unclaimed_.front().second;
    unclaimed_.pop_front();
    const auto found = steps_.find(step);
    if (found != steps_.end() && !found->second.has_begun) end(step);
  }
}

}  // namespace longhaul

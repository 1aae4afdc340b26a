#include "longhaul/cluster/worker/step_table.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

AbortedError late_call(int64_t step, proto::StepState state) {
  return AbortedError(fmt::format("step {} is over on this task: it was {}", step,
                                  state == proto::STEP_COMMITTED ? "committed, and its results are no longer kept"
                                                                 : "aborted before its part began"));
}

std::shared_ptr<StepLife> checked_master(std::shared_ptr<StepLife> life, const IncomingCall::Caller& master) {
  if (life == nullptr || life->call().master.incarnation == master.incarnation) return life;
  throw AbortedError(fmt::format("step {} belongs to the master on task {}, not to the one on {}", life->call().step,
                                 life->call().master.task, master.task));
}

}  // namespace

StepTable::Begun StepTable::begin(StepLife::Call call) {
  const IncomingCall::Caller master = call.master;
  Begun begun;
  {
    MutexLock lock(mutex_);
    const int64_t step = call.step;
    if (const auto known = remembered_.find(step); known != remembered_.end()) throw late_call(step, known->second);
    std::shared_ptr<StepLife>& life = steps_[step];
    begun.is_new = life == nullptr;
    if (begun.is_new) life = std::make_shared<StepLife>(std::move(call));
    begun.life = life;
  }
  checked_master(begun.life, master);
  return begun;
}

std::shared_ptr<StepLife> StepTable::find(int64_t step) const {
  MutexLock lock(mutex_);
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : found->second;
}

std::shared_ptr<StepLife> StepTable::find(int64_t step, const IncomingCall::Caller& master) const {
  return checked_master(find(step), master);
}

proto::StepState StepTable::remembered(int64_t step) const {
  MutexLock lock(mutex_);
  const auto known = remembered_.find(step);
  return known == remembered_.end() ? proto::STEP_UNKNOWN : known->second;
}

std::shared_ptr<StepLife> StepTable::bury(int64_t step) {
  MutexLock lock(mutex_);
  const auto found = steps_.find(step);
  if (found != steps_.end()) return found->second;
  remember(step, proto::STEP_ABORTED);
  return nullptr;
}

void StepTable::remember(int64_t step, proto::StepState state) {
  if (!remembered_.emplace(step, state).second) return;
  in_order_.push_back(step);
  if (in_order_.size() <= options_.most_remembered) return;
  remembered_.erase(in_order_.front());
  in_order_.pop_front();
}

std::shared_ptr<StepLife> StepTable::forget(Steps::iterator step, Seconds orphan_until) {
  std::shared_ptr<StepLife> life = std::move(step->second);
  if (orphan_until.count() > 0 && life->call().joint && life->has_written()) {
    orphans_.emplace_back(orphan_until, step->first);
  }
  remember(step->first, life->ask(/*resolve=*/false).state);
  to_forget_.erase(step->first);
  steps_.erase(step);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->life != life) continue;
    kept_bytes_ -= kept->bytes;
    kept_.erase(kept);
    break;
  }
  return life;
}

void StepTable::keep(const std::shared_ptr<StepLife>& life) {
  std::vector<std::shared_ptr<StepLife>> dropped;  // destroyed without the lock
  const uint64_t bytes = life->result_bytes();
  MutexLock lock(mutex_);
  const auto found = steps_.find(life->call().step);
  if (found == steps_.end()) return;
  if (const auto due = to_forget_.find(found->first); due != to_forget_.end()) {
    dropped.push_back(forget(found, due->second));
    return;
  }
  kept_.push_back({life, bytes});
  kept_bytes_ += bytes;
  while (kept_bytes_ > options_.most_result_bytes || kept_.size() > options_.most_over) {
    dropped.push_back(forget(steps_.find(kept_.front().life->call().step), Seconds{0}));
  }
}

void StepTable::forget_when_over(int64_t step, Seconds orphan_until) {
  std::shared_ptr<StepLife> dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  if (found->second->is_over()) {
    dropped = forget(found, orphan_until);
  } else {
    to_forget_[step] = orphan_until;
  }
}

std::vector<int64_t> StepTable::committed_orphans(Seconds now) {
  std::vector<int64_t> steps;
  MutexLock lock(mutex_);
  while (!orphans_.empty() && orphans_.front().first <= now) orphans_.pop_front();
  for (const auto& [until, step] : orphans_) steps.push_back(step);
  return steps;
}

std::vector<std::shared_ptr<StepLife>> StepTable::of_session(const std::string& session) const {
  std::vector<std::shared_ptr<StepLife>> steps = all();
  std::erase_if(steps, [&](const auto& life) { return life->call().session != session; });
  return steps;
}

std::vector<std::shared_ptr<StepLife>> StepTable::all() const {
  std::vector<std::shared_ptr<StepLife>> steps;
  MutexLock lock(mutex_);
  for (const auto& [number, life] : steps_) steps.push_back(life);
  return steps;
}

}  // namespace longhaul

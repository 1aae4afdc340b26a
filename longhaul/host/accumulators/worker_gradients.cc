#include "longhaul/host/accumulators/worker_gradients.h"

#include <bit>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

bool is_worth_a_line(int64_t dropped) {
  return dropped >= 2 && std::has_single_bit(static_cast<uint64_t>(dropped));
}

}  // namespace

void WorkerGradients::add(const std::string& worker, int64_t local_step, const Accumulator::Applied& applied) {
  Counts counts;
  {
    MutexLock lock(mutex_);
    Counts& all = workers_[worker];
    ++(applied.counted ? all.counted : all.dropped);
    counts = all;
  }
  if (applied.counted || !is_worth_a_line(counts.dropped)) return;
  log_message(counts.dropped > counts.counted ? LogLevel::kWarning : LogLevel::kInfo,
              fmt::format("{}: {} of its {} gradients were dropped, because their step was over: the last one was "
                          "computed in step {}, when step {} had begun. If a worker is always late, give it less to do "
                          "in a step, or raise replicas_to_aggregate",
                          worker, counts.dropped, counts.dropped + counts.counted, local_step, applied.step));
}

WorkerGradients::Counts WorkerGradients::of(const std::string& worker) const {
  MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  return found == workers_.end() ? Counts{} : found->second;
}

std::shared_ptr<WorkerGradients> worker_gradients(ResourceMap& resources) {
  return std::static_pointer_cast<WorkerGradients>(
      resources.find_or_make("gradients of workers", [] { return std::make_shared<WorkerGradients>(); }));
}

}  // namespace longhaul

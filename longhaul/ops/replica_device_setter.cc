#include "longhaul/ops/replica_device_setter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

class RoundRobinStrategy {
 public:
  explicit RoundRobinStrategy(size_t num_tasks) : num_tasks_(num_tasks) {}
  int operator()(const OperationSpec&) { return static_cast<int>(next_++ % num_tasks_); }

 private:
  size_t num_tasks_, next_ = 0;
};

// A cluster of chief and workers alone does without parameter servers; one with other jobs has named them otherwise.
template <typename Cluster>
void warn_of_other_jobs(const Cluster& cluster, const std::string& job) {
  constexpr std::string_view kOfReplicas[] = {"chief", "master", "worker", "evaluator", "local"};
  std::vector<std::string> jobs, others;
  for (const auto& [name, tasks] : cluster) {
    jobs.push_back(name);
    if (std::ranges::count(kOfReplicas, name) == 0) others.push_back(name);
  }
  if (others.empty()) return;
  log_warning(
      "replica_device_setter: the cluster has no job '{}', of ps_device, but {}: nothing is placed on servers, so each "
      "program keeps variables of its own",
      job, fmt::join(jobs, ", "));
}

// The indices of the tasks of the ps job.
std::vector<int> indices_of_ps(const ReplicaDeviceOptions& options, const std::string& job) {
  std::vector<int> indices;
  if (options.cluster) {
    const auto tasks = options.cluster->find(job);
    if (tasks == options.cluster->end()) {
      warn_of_other_jobs(*options.cluster, job);
      return {};
    }
    for (const auto& [index, address] : tasks->second) indices.push_back(index);
    return indices;
  }
  if (options.ps_tasks < 0) {
    throw InvalidArgumentError(fmt::format("replica_device_setter: ps_tasks is {}, below 0", options.ps_tasks));
  }
  indices.resize(static_cast<size_t>(options.ps_tasks));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class ReplicaDeviceChooser {
 public:
  ReplicaDeviceChooser(const ReplicaDeviceOptions& options, DeviceSpec ps_device, std::vector<int> indices)
      : ps_device_(std::move(ps_device)),
        worker_device_(DeviceSpec::parse(options.worker_device)),
        merge_devices_(options.merge_devices),
        indices_(std::move(indices)),
        ps_ops_(options.ps_ops.empty() ? standard_ps_ops() : options.ps_ops),
        strategy_(options.ps_strategy ? options.ps_strategy : RoundRobinStrategy(indices_.size())) {}

  std::string device_of(const OperationSpec& op) {
    if (!merge_devices_ && !op.device.empty()) return op.device;
    const DeviceSpec inner = DeviceSpec::parse(op.device);
    const bool goes_to_ps = ps_device_ != DeviceSpec() && std::ranges::count(ps_ops_, op.type) > 0;
    return (goes_to_ps ? ps_device_for(op, inner) : worker_device_).merged_with(inner).to_string();
  }

 private:
  DeviceSpec ps_device_for(const OperationSpec& op, const DeviceSpec& inner) {
    DeviceSpec device = ps_device_;
    const bool is_of_this_job = inner.job.empty() || inner.job == device.job;
    if (!device.job.empty() && is_of_this_job) device.task = next_task(op);
    return device;
  }

  int next_task(const OperationSpec& op) {
    const int chosen = strategy_(op);
    if (chosen >= 0 && static_cast<size_t>(chosen) < indices_.size()) return indices_[static_cast<size_t>(chosen)];
    throw InvalidArgumentError(
        fmt::format("replica_device_setter: ps_strategy chose the task {} for {} ({}), but there "
                    "are {} ps tasks, counted from 0",
                    chosen, op.name, op.type, indices_.size()));
  }

  const DeviceSpec ps_device_, worker_device_;
  const bool merge_devices_;
  const std::vector<int> indices_;
  const std::vector<std::string> ps_ops_;
  PsStrategy strategy_;
};

}  // namespace

const std::vector<std::string>& standard_ps_ops() {
  static const auto* types = new std::vector<std::string>{"Variable",
                                                          "VariableV2",
                                                          "AutoReloadVariable",
                                                          "MutableHashTable",
                                                          "MutableHashTableV2",
                                                          "MutableHashTableOfTensors",
                                                          "MutableHashTableOfTensorsV2",
                                                          "MutableDenseHashTable",
                                                          "MutableDenseHashTableV2",
                                                          "VarHandleOp",
                                                          "BoostedTreesEnsembleResourceHandleOp",
                                                          "BoostedTreesQuantileStreamResourceHandleOp",
                                                          "ResourceConditionalAccumulator"};
  return *types;
}

DeviceFunction replica_device_setter(const ReplicaDeviceOptions& options) {
  const DeviceSpec ps_device = DeviceSpec::parse(options.ps_device);
  std::vector<int> indices = indices_of_ps(options, ps_device.job);
  if (indices.empty()) return nullptr;
  if (!options.merge_devices) {
    log_warning("replica_device_setter: merge_devices = false is deprecated; devices of inner scopes will be merged");
  }
  const auto chooser = std::make_shared<ReplicaDeviceChooser>(options, ps_device, std::move(indices));
  return [chooser](const OperationSpec& op) { return chooser->device_of(op); };
}

double byte_size_load_fn(const OperationSpec& op) {
  const auto shape = op.attrs.find("shape"), dtype = op.attrs.find("dtype");
  const auto* dims = shape == op.attrs.end() ? nullptr : std::get_if<Shape>(&shape->second);
  const auto* type = dtype == op.attrs.end() ? nullptr : std::get_if<DType>(&dtype->second);
  if (dims == nullptr || type == nullptr || !dims->fully_defined()) {
    throw InvalidArgumentError(fmt::format("byte_size_load_fn: the size of {} ({}) is not known: {}", op.name, op.type,
                                           dims == nullptr ? "it has no shape" : "its shape is " + dims->to_string()));
  }
  return static_cast<double>(dims->num_elements()) * static_cast<double>(std::max<size_t>(dtype_size(*type), 1));
}

GreedyLoadBalancingStrategy::GreedyLoadBalancingStrategy(int num_tasks, LoadFunction load_fn)
    : load_fn_(std::move(load_fn)) {
  if (num_tasks < 1) {
    throw InvalidArgumentError(fmt::format("GreedyLoadBalancingStrategy: num_tasks is {}, below 1", num_tasks));
  }
  if (!load_fn_) throw InvalidArgumentError("GreedyLoadBalancingStrategy: load_fn is empty");
  loads_.resize(static_cast<size_t>(num_tasks));
}

int GreedyLoadBalancingStrategy::operator()(const OperationSpec& op) {
  const double load = load_fn_(op);
  if (!std::isfinite(load) || load < 0) {
    throw InvalidArgumentError(fmt::format("GreedyLoadBalancingStrategy: the load of {} is {}", op.name, load));
  }
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += load;
  return static_cast<int>(least - loads_.begin());
}

}  // namespace longhaul

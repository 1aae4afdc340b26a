#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// Chooses the ps task of an operation: 0 for the first task of the ps job, 1 for the next, ...
using PsStrategy = std::function<int(const OperationSpec& op)>;

struct ReplicaDeviceOptions {
  int ps_tasks = 0;  // the number of ps tasks; taken from `cluster` if that is given
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  // false: an operation for which an inner scope specifies any device gets nothing from the setter.
  bool merge_devices = true;
  // The addresses by job and index; a ClusterSpec converts to it.
  std::optional<std::map<std::string, std::map<int, std::string>>> cluster{};
  std::vector<std::string> ps_ops{};  // the types that go to ps tasks; empty: standard_ps_ops()
  PsStrategy ps_strategy{};           // empty: each task in turn
};

// The types of operations that hold a model: variables, mutable tables, accumulators.
const std::vector<std::string>& standard_ps_ops();

// Spreads a model over the ps tasks and leaves the computation to the workers (`tf.train.replica_device_setter`):
//
//   const ClusterSpec cluster({{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {"worker0:2222"}}});
//   const Scope model = root.with_device(replica_device_setter({.cluster = cluster}));
//   ops::variable(model, "first", Tensor::scalar(0.f));   // on /job:ps/task:0
//   ops::variable(model, "second", Tensor::scalar(0.f));  // on /job:ps/task:1
//
// An operation of `ps_ops` gets `ps_device` with the next task, all others get `worker_device`; what inner scopes
// specify is merged over that. One that they put into another job than `ps_device` gets no task and takes no turn. A
// task that they specify is kept, but takes a turn. Local variables count as variables, so give them a device.
//
// Empty, which as a device is no device at all, so that the same program runs alone: there are no ps tasks, or the
// cluster lacks the job of `ps_device` or tasks in it. The function is for one thread at a time, as graphs are.
//
// InvalidArgumentError: a device is malformed, `ps_tasks` is below 0; from the function, the strategy's task is none.
DeviceFunction replica_device_setter(const ReplicaDeviceOptions& options);

// The size of what an operation holds.
using LoadFunction = std::function<double(const OperationSpec& op)>;

// That of a variable: its bytes; for strings, their number. InvalidArgumentError: its shape is not known, or it is no
// variable.
double byte_size_load_fn(const OperationSpec& op);

// Gives each operation to the task that has the least so far, and to the first of several
// (`tf.contrib.training.GreedyLoadBalancingStrategy`).
//
//   const GreedyLoadBalancingStrategy strategy(2, byte_size_load_fn);
//   const auto setter = replica_device_setter({.ps_tasks = 2, .ps_strategy = strategy});
class GreedyLoadBalancingStrategy {
 public:
  // InvalidArgumentError: there are no tasks, or no function.
  GreedyLoadBalancingStrategy(int num_tasks, LoadFunction load_fn);

  // InvalidArgumentError: the load is below 0, or no number.
  int operator()(const OperationSpec& op);

 private:
  LoadFunction load_fn_;
  std::vector<double> loads_;  // by task
};

}  // namespace longhaul

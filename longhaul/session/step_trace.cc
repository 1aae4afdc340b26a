#include "longhaul/session/step_trace.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <map>
#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {
namespace {

constexpr char kThisProcess[] = "/job:localhost/replica:0/task:0";

std::string full_device_name(const std::string& requested, const std::string& task = kThisProcess) {
  return DeviceSpec::parse(task + "/device:CPU:0").merged_with(DeviceSpec::parse(requested)).to_string();
}

std::string device_of(const Operation& op, const DevicesOfOperations& placed, const std::string& task) {
  const auto found = placed.find(op);
  return found != placed.end() ? found->second : full_device_name(op.device(), task);
}

// "dense/mul = Mul(x, dense/kernel/read, ^init)": the inputs as in a NodeDef. TensorFlow's timeline takes type and
// inputs from it, and so does ours.
std::string label_of(const Operation& op) {
  std::vector<std::string> inputs;
  for (const Output& input : op.inputs()) inputs.push_back(input.index() == 0 ? input.op().name() : input.name());
  for (const Operation& control : op.control_inputs()) inputs.push_back("^" + control.name());
  return fmt::format("{} = {}({})", op.name(), op.type(), fmt::join(inputs, ", "));
}

int64_t nanos(double seconds) {
  return std::llround(seconds * 1e9);
}
// Rounded up, because TensorBoard takes 0 for "not known".
int64_t micros(int64_t nanos) {
  return (nanos + 999) / 1000;
}

void set_times(const TracedOperation& traced, double wall_time, proto::NodeExecStats* stats) {
  const int64_t start = nanos(wall_time) + nanos(traced.start.count());
  const int64_t took = nanos((traced.end - traced.start).count());
  stats->set_scheduled_micros(start / 1000);
  stats->set_scheduled_nanos(start);
  stats->set_all_start_micros(start / 1000);
  stats->set_all_start_nanos(start);
  stats->set_op_end_rel_micros(micros(took));
  stats->set_op_end_rel_nanos(took);
  stats->set_all_end_rel_micros(micros(took));
  stats->set_all_end_rel_nanos(took);
}

// Adds a result and returns its size in bytes; that of strings is not known.
int64_t add_result(const TracedOperation::Result& result, proto::NodeExecStats* stats) {
  const int64_t bytes = result.shape.num_elements() * static_cast<int64_t>(dtype_size(result.dtype));
  proto::NodeOutput* output = stats->add_output();
  output->set_slot(result.slot);
  proto::TensorDescription* tensor = output->mutable_tensor_description();
  tensor->set_dtype(static_cast<proto::DataType>(result.dtype));
  *tensor->mutable_shape() = to_proto(result.shape);
  tensor->mutable_allocation_description()->set_requested_bytes(bytes);
  tensor->mutable_allocation_description()->set_allocator_name("cpu");
  return bytes;
}

// The memory is that of the results, wherever the bytes came from: a kept buffer, a variable, an input.
void set_results(const TracedOperation& traced, proto::NodeExecStats* stats) {
  int64_t bytes = 0;
  for (const TracedOperation::Result& result : traced.results) bytes += add_result(result, stats);
  proto::AllocatorMemoryUsed* memory = stats->add_memory();
  memory->set_allocator_name("cpu");
  memory->set_total_bytes(bytes);
  memory->set_peak_bytes(bytes);
}

std::string name_of_this_thread() {
  std::array<char, 16> name{};  // the most that Linux has
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

// Of the first `count` operations.
proto::StepStats step_stats(const StepTrace& trace, const std::string& task, size_t count) {
  const auto thread = static_cast<uint32_t>(gettid());
  std::map<std::string, proto::DeviceStepStats> devices;
  for (size_t i = 0; i < count; ++i) {
    const TracedOperation& traced = trace.operations[i];
    proto::NodeExecStats* stats = devices[device_of(traced.op, trace.devices, task)].add_node_stats();
    stats->set_node_name(traced.op.name());
    stats->set_timeline_label(label_of(traced.op));
    stats->set_thread_id(thread);
    set_times(traced, trace.wall_time, stats);
    set_results(traced, stats);
  }
  if (devices.empty()) devices[full_device_name("", task)];  // nothing but constants and what was fed
  proto::StepStats all;
  for (auto& [name, device] : devices) {
    device.set_device(name);
    (*device.mutable_thread_names())[thread] = name_of_this_thread();
    all.mutable_dev_stats()->Add(std::move(device));
  }
  return all;
}

// What the run needed, as one graph for all devices. The operations of fed tensors stand there without inputs.
proto::GraphDef partition_graph(const Graph& graph, const Session::Request& request,
                                const DevicesOfOperations& placed) {
  const std::unordered_set<Output, OutputHash> fed(request.feeds.begin(), request.feeds.end());
  std::vector<Operation> targets;
  for (const Fetch::Target& fetch : request.fetches) {
    if (fetch.is_operation() || !fed.contains(fetch.output())) targets.push_back(fetch.op);
  }
  std::unordered_set<std::string> needed, given;
  std::unordered_map<std::string, std::string> elsewhere;
  for (const auto& [op, device] : placed) elsewhere.emplace(op.name(), device);
  for (const Operation& op : needed_operations(targets, request.feeds)) needed.insert(op.name());
  for (const Output& feed : request.feeds) given.insert(feed.op().name());

  proto::GraphDef part, whole = to_graph_def(graph, /*add_shapes=*/true);
  *part.mutable_versions() = whole.versions();
  for (proto::NodeDef& node : *whole.mutable_node()) {
    const bool runs = needed.contains(node.name());
    if (!runs && !given.contains(node.name())) continue;
    const auto device = elsewhere.find(node.name());
    node.set_device(device != elsewhere.end() ? device->second : full_device_name(node.device()));
    if (!runs) node.clear_input();
    part.add_node()->Swap(&node);
  }
  return part;
}

}  // namespace

proto::RunMetadata describe_run(const Graph& graph, const Session::Request& request, const StepTrace& trace) {
  proto::RunMetadata metadata;
  if (request.options.trace_level != TraceLevel::kNoTrace)
    *metadata.mutable_step_stats() = step_stats(trace, kThisProcess, trace.operations.size());
  if (request.options.output_partition_graphs)
    *metadata.add_partition_graphs() = partition_graph(graph, request, trace.devices);
  return metadata;
}

std::string part_trace(const StepTrace& trace, const std::string& task, size_t most) {
  const size_t all = trace.operations.size();
  size_t count = all;
  std::string bytes = proto::serialize(step_stats(trace, task, count));
  while (bytes.size() > most && count > 0) bytes = proto::serialize(step_stats(trace, task, count /= 2));
  if (count < all)
    log_warning(
        "the trace of a run would take more than {} MiB of task {}: the last {} of its {} operations are left out",
        most >> 20, task, all - count, all);
  return bytes;
}

void add_part_trace(const std::string& task, const std::string& part, proto::StepStats* all) {
  try {
    proto::StepStats stats;
    if (part.size() > kMostTraceBytes || !proto::parse_within_limits(part, &stats))
      throw InvalidArgumentError(fmt::format("{} bytes, damaged or too many", part.size()));
    for (proto::DeviceStepStats& device : *stats.mutable_dev_stats()) {
      const DeviceSpec spec = DeviceSpec::parse(device.device());
      device.set_device(full_device_name(DeviceSpec{.type = spec.type, .index = spec.index}.to_string(), task));
    }
    all->MergeFrom(stats);
  } catch (const Error& error) {
    log_warning("what task {} has recorded of a traced run is left out: {}", task, excerpt(error.what()));
  }
}

}  // namespace longhaul

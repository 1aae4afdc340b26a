#include "longhaul/train/saving/restore_on_tasks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/session/task_snapshots.h"
#include "longhaul/train/saving/directory_probe.h"

namespace longhaul {
namespace {

using RestoredOutputs = std::unordered_set<Output, OutputHash>;

// The operations that a group stands for.
void add_members(const Operation& op, std::unordered_set<Operation, OperationHash>& seen,
                 std::vector<Operation>* members) {
  if (!seen.insert(op).second) return;
  if (op.type() != "NoOp") {
    members->push_back(op);
    return;
  }
  for (const Operation& member : op.control_inputs()) add_members(member, seen, members);
}

// Which of the restored tensors the operation needs; what is behind them does not count, for they are fed.
std::vector<Output> needed_by(const Operation& op, const RestoredOutputs& restored) {
  std::vector<Output> needed;
  std::vector<Operation> open{op};
  std::unordered_set<Operation, OperationHash> seen{op};
  RestoredOutputs found;
  for (size_t i = 0; i < open.size(); ++i) {
    const Operation next = open[i];
    const auto visit = [&](const Operation& earlier) {
      if (seen.insert(earlier).second) open.push_back(earlier);
    };
    for (const Output& input : next.inputs()) {
      if (!restored.contains(input)) {
        visit(input.op());
      } else if (found.insert(input).second) {
        needed.push_back(input);
      }
    }
    for (const Operation& control : next.control_inputs()) visit(control);
  }
  return needed;
}

// What still has no value, in the words by which other processes learn that the model is ready.
std::set<std::string> without_value(Session& session) {
  std::vector<Fetch> reports;
  for (const Operation& op : session.graph().operations()) {
    if (op.type() == "ReportUninitializedVariables") reports.emplace_back(op.output(0));
  }
  std::set<std::string> names;
  if (reports.empty()) return names;
  for (const Tensor& report : session.run(reports)) {
    for (const std::string& name : report.flat<std::string>()) names.insert(name);
  }
  return names;
}

bool writes_one_of(const Operation& op, const std::set<std::string>& variables) {
  if ((op.traits() & kWritesVariable) == 0) return false;
  for (size_t i = 0; i < static_cast<size_t>(op.ref_inputs()); ++i) {
    if (variables.contains(op.inputs()[i].op().name())) return true;
  }
  return false;
}

// The operations that put values back: first those of variables that have a value, then, from `unready` on, those of
// variables without one. In runs of their own these make the model ready once all else has been put back on all tasks;
// in a single run a task might be ready while another one still has its old values, and whoever waits would train that.
struct RestoreOrder {
  RestoreOrder(Session& session, const Operation& restore) {
    std::unordered_set<Operation, OperationHash> seen;
    add_members(restore, seen, &members);
    const std::set<std::string> without = without_value(session);
    const auto first = std::stable_partition(members.begin(), members.end(),
                                             [&](const Operation& op) { return !writes_one_of(op, without); });
    unready = static_cast<size_t>(first - members.begin());
  }

  std::vector<Operation> members;
  size_t unready = 0;
};

// Each task reads its own.
void restore_on_tasks(Session& session, const Operation& restore, const Feeds& feeds) {
  const RestoreOrder order(session, restore);
  const auto middle = order.members.begin() + static_cast<ptrdiff_t>(order.unready);
  for (const std::vector<Fetch>& targets :
       {std::vector<Fetch>(order.members.begin(), middle), std::vector<Fetch>(middle, order.members.end())}) {
    if (!targets.empty()) session.run(targets, feeds);
  }
}

// Reads a checkpoint here and feeds its values, a bounded number of bytes at a time.
class FedRestore {
 public:
  FedRestore(Session& session, const BundleReader& reader, uint64_t most_bytes)
      : session_(session), reader_(reader), most_bytes_(most_bytes) {}

  void add(const SaverNodes::SavedTensor& tensor) { sources_.emplace(tensor.restored, &tensor); }
  void add(const Output& restored, const Tensor& value) { given_.emplace(restored, value); }

  void run(const Operation& restore) {
    RestoredOutputs restored;
    for (const auto& [output, source] : sources_) restored.insert(output);
    for (const auto& [output, value] : given_) restored.insert(output);
    const RestoreOrder order(session_, restore);
    for (size_t i = 0; i < order.members.size(); ++i) {
      if (i == order.unready) flush();
      put_back(order.members[i], needed_by(order.members[i], restored));
    }
    flush();
  }

 private:
  void put_back(const Operation& op, const std::vector<Output>& needed) {
    uint64_t more = 0;
    for (const Output& output : needed) more += fed_.contains(output) ? 0 : bytes_of(output);
    if (bytes_ + more > most_bytes_) flush();
    for (const Output& output : needed) {
      if (!fed_.insert(output).second) continue;
      bytes_ += bytes_of(output);
      feeds_.emplace_back(output, value_of(output));
    }
    targets_.emplace_back(op);
  }

  uint64_t bytes_of(const Output& output) const {
    if (const auto given = given_.find(output); given != given_.end()) return given->second.size_bytes();
    const SaverNodes::SavedTensor& tensor = *sources_.at(output);
    const BundleReader::Entry& entry = reader_.entry(tensor.name);
    const Shape shape =
        tensor.slice.empty() ? entry.shape : shape_of(parse_shape_and_slice(tensor.slice).second.within(entry.shape));
    return static_cast<uint64_t>(shape.num_elements()) * dtype_size(static_cast<DType>(entry.dtype));
  }

  Tensor value_of(const Output& output) const {
    if (const auto given = given_.find(output); given != given_.end()) return given->second;
    const SaverNodes::SavedTensor& tensor = *sources_.at(output);
    if (tensor.slice.empty()) return reader_.read(tensor.name);
    return reader_.read_slice(tensor.name, parse_shape_and_slice(tensor.slice).second);
  }

  void flush() {
    if (!targets_.empty()) session_.run(targets_, feeds_);
    targets_.clear();
    feeds_.clear();
    fed_.clear();
    bytes_ = 0;
  }

  Session& session_;
  const BundleReader& reader_;
  const uint64_t most_bytes_;
  std::unordered_map<Output, const SaverNodes::SavedTensor*, OutputHash> sources_;
  std::unordered_map<Output, Tensor, OutputHash> given_;
  std::vector<Fetch> targets_;  // of the next run
  Feeds feeds_;
  RestoredOutputs fed_;
  uint64_t bytes_ = 0;
};

std::vector<std::string> tasks_with_values(TaskSnapshots* on_tasks, const SaverNodes& nodes) {
  if (on_tasks == nullptr) return {};
  std::vector<Fetch> reads;
  for (const auto& tensor : nodes.tensors) reads.emplace_back(tensor.read);
  return on_tasks->tasks_of(reads);
}

// Each task has a read operation of its own only where the saver is sharded.
bool all_can_read(TaskSnapshots& on_tasks, const std::vector<std::string>& tasks, FileSystem& files,
                  const SaverNodes& nodes, const std::string& prefix) {
  const std::optional<std::string> committed = committed_prefix(files, prefix);
  return nodes.sharded && committed && see_file(on_tasks, tasks, files, index_path(*committed));
}

}  // namespace

void restore_values(Session& session, FileSystem& files, const SaverNodes& nodes, const BundleReader& reader,
                    const std::vector<SaverNodes::SavedTensor>& tensors, Feeds feeds) {
  TaskSnapshots* const on_tasks = session.capabilities().task_snapshots;
  const std::vector<std::string> tasks = tasks_with_values(on_tasks, nodes);
  if (tasks.empty()) {
    session.run(nodes.restore, feeds);
    return;
  }
  if (all_can_read(*on_tasks, tasks, files, nodes, reader.prefix())) {
    feeds.front().second = Tensor::scalar(canonical_prefix(reader.prefix()));  // tasks may have other directories
    restore_on_tasks(session, nodes.restore, feeds);
    return;
  }
  FedRestore restore(session, reader, on_tasks->most_in_flight());
  for (const SaverNodes::SavedTensor& tensor : tensors) restore.add(tensor);
  for (size_t i = 1; i < feeds.size(); ++i)
    restore.add(feeds[i].first.resolve(session.graph()).output(), feeds[i].second);
  restore.run(nodes.restore);
}

}  // namespace longhaul

#include "longhaul/train/saving/values_on_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/checkpoint/bundle/same_contents.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/random_state.h"
#include "longhaul/session/task_snapshots.h"
#include "longhaul/train/saving/directory_probe.h"

namespace longhaul {
namespace {

// The tasks cannot be told later: what they write keeps the rate that it began with.
double rate_from_now(const BundleWriterOptions& options) {
  const bool is_lifted = options.pause && !options.pause(Seconds{0});
  return is_lifted ? 0 : options.max_bytes_per_second;
}

class ValuesOnTasks : public SavedValues {
 public:
  ValuesOnTasks(TaskSnapshots& session, const SaverNodes& nodes, std::unique_ptr<TaskSnapshot> snapshot);

  const std::vector<Tensor>& samples() const override { return samples_; }
  uint64_t bytes() const override;
  bool are_saved(FileSystem& files, const std::string& prefix) override;
  bool all_but_random_states_are_saved(FileSystem& files, const std::string& prefix) override;
  uint64_t write(FileSystem& files, const std::string& prefix, const std::optional<ExtraFile>& extra_file,
                 const BundleWriterOptions& options) override;

 private:
  struct TaskPart {
    std::string task;
    std::vector<size_t> values;
    uint64_t bytes = 0;
  };

  const ValueOnTask& value(size_t i) const { return snapshot_->values()[i]; }
  std::vector<ExpectedTensor> expected();
  void write_there(BundleWriter& writer, double max_bytes_per_second);
  void adopt(BundleWriter& writer, const TaskPart& part, const WrittenShard& written) const;
  void bring_here(BundleWriter& writer);

  TaskSnapshots& session_;
  const SaverNodes& nodes_;
  std::unique_ptr<TaskSnapshot> snapshot_;
  std::vector<Tensor> samples_;
  std::vector<TaskPart> parts_;  // one for each task, by name
};

ValuesOnTasks::ValuesOnTasks(TaskSnapshots& session, const SaverNodes& nodes, std::unique_ptr<TaskSnapshot> snapshot)
    : session_(session), nodes_(nodes), snapshot_(std::move(snapshot)) {
  step = snapshot_->global_step();
  std::map<std::string, TaskPart> by_task;
  for (size_t i = 0; i < nodes_.tensors.size(); ++i) {
    TaskPart& part = by_task[value(i).task];
    part.task = value(i).task;
    part.values.push_back(i);
    part.bytes += value(i).bytes;
    samples_.push_back(value(i).sample);
  }
  for (auto& [task, part] : by_task) parts_.push_back(std::move(part));
}

uint64_t ValuesOnTasks::bytes() const {
  uint64_t bytes = 0;
  for (const TaskPart& part : parts_) bytes += part.bytes;
  return bytes;
}

std::vector<ExpectedTensor> ValuesOnTasks::expected() {
  const std::vector<uint32_t> crcs = snapshot_->checksums();
  std::vector<ExpectedTensor> tensors;
  for (size_t i = 0; i < nodes_.tensors.size(); ++i) {
    tensors.push_back(expected_elsewhere(nodes_.tensors[i].name, nodes_.tensors[i].slice, value(i).dtype,
                                         value(i).shape, {value(i).bytes, crcs[i]}));
  }
  return tensors;
}

bool ValuesOnTasks::are_saved(FileSystem& files, const std::string& prefix) {
  if (!checkpoint_exists(files, prefix)) return false;
  return has_but_for(files, prefix, expected(), [](const std::string&) { return false; });
}

bool ValuesOnTasks::all_but_random_states_are_saved(FileSystem& files, const std::string& prefix) {
  if (!checkpoint_exists(files, prefix)) return false;
  return has_but_for(files, prefix, expected(),
                     [](const std::string& name) { return name.starts_with(ops::kRandomStatePrefix); });
}

uint64_t ValuesOnTasks::write(FileSystem& files, const std::string& prefix, const std::optional<ExtraFile>& extra_file,
                              const BundleWriterOptions& given) {
  BundleWriterOptions options = given;
  options.num_shards = static_cast<int>(parts_.size());
  std::vector<std::string> tasks;
  for (const TaskPart& part : parts_) tasks.push_back(part.task);
  options.data_elsewhere = see_directory(session_, tasks, files, directory_name(prefix));
  for (size_t shard = 0; shard < parts_.size(); ++shard) {
    for (const size_t i : parts_[shard].values)
      options.add_expected(static_cast<int>(shard), value(i).dtype == kString ? 0 : value(i).bytes);
  }
  BundleWriter writer(files, prefix, options);
  try {
    if (options.data_elsewhere) {
      write_there(writer, rate_from_now(options));
    } else {
      bring_here(writer);
    }
  } catch (...) {
    snapshot_ = nullptr;  // tells the tasks to stop, before the writer removes what they have written
    throw;
  }
  snapshot_ = nullptr;  // while it is held, the next steps must copy instead of updating in place
  samples_.clear();
  if (extra_file) writer.add_file(extra_file->path, extra_file->contents());
  writer.finish();
  return writer.data_bytes();
}

// Each gets its share of the limit, so that all end together.
void ValuesOnTasks::write_there(BundleWriter& writer, double max_bytes_per_second) {
  const double all = static_cast<double>(std::max<uint64_t>(bytes(), 1));
  std::vector<ShardToWrite> shards;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const double share = static_cast<double>(std::max<uint64_t>(parts_[i].bytes, 1)) / all;
    shards.push_back({.task = parts_[i].task,
                      .path = canonical_prefix(writer.temporary_data(static_cast<int>(i))),
                      .values = parts_[i].values,
                      .max_bytes_per_second = max_bytes_per_second * share});
  }
  const std::vector<WrittenShard> written = snapshot_->write(shards);
  for (size_t i = 0; i < parts_.size(); ++i) {
    writer.use_shard(static_cast<int>(i));
    adopt(writer, parts_[i], written[i]);
  }
}

void ValuesOnTasks::adopt(BundleWriter& writer, const TaskPart& part, const WrittenShard& written) const {
  for (size_t i = 0; i < part.values.size(); ++i) {
    const SaverNodes::SavedTensor& tensor = nodes_.tensors[part.values[i]];
    if (tensor.slice.empty()) {
      writer.adopt(tensor.name, written.entries[i]);
    } else {
      const auto [full_shape, slice] = parse_shape_and_slice(tensor.slice);
      writer.adopt_slice(tensor.name, full_shape, slice, written.entries[i]);
    }
  }
  writer.adopt_file(written.bytes);
}

void ValuesOnTasks::bring_here(BundleWriter& writer) {
  std::vector<size_t> order;
  for (const TaskPart& part : parts_) order.insert(order.end(), part.values.begin(), part.values.end());
  const std::unique_ptr<ValueStream> stream = snapshot_->read(order);
  for (size_t shard = 0; shard < parts_.size(); ++shard) {
    writer.use_shard(static_cast<int>(shard));
    for (const size_t i : parts_[shard].values) {
      const TensorInPieces pieces{value(i).dtype, value(i).shape, [&] { return stream->next(); }};
      const SaverNodes::SavedTensor& tensor = nodes_.tensors[i];
      if (tensor.slice.empty()) {
        writer.add(tensor.name, pieces);
      } else {
        const auto [full_shape, slice] = parse_shape_and_slice(tensor.slice);
        writer.add_slice(tensor.name, full_shape, slice, pieces);
      }
    }
  }
}

}  // namespace

std::unique_ptr<SavedValues> read_on_tasks(Session& session, const SaverNodes& nodes, const std::vector<Fetch>& fetches,
                                           bool with_step) {
  TaskSnapshots* const on_tasks = session.capabilities().task_snapshots;
  if (on_tasks == nullptr || nodes.tensors.empty() || on_tasks->tasks_of(fetches).empty()) return nullptr;
  const auto step = with_step ? std::optional(fetches.size() - 1) : std::nullopt;
  return std::make_unique<ValuesOnTasks>(*on_tasks, nodes, on_tasks->take_there(fetches, step));
}

}  // namespace longhaul

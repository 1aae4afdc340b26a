#include "longhaul/train/saved_state/saver_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

struct Shard {
  std::string device;
  std::vector<Saveable> saveables;
};

// "SaveV2", "SaveV2_1", ...
std::string numbered(const std::string& name, size_t i) {
  return i == 0 ? name : fmt::format("{}_{}", name, i);
}

// The same tensor, on the CPU of its task: files are written there.
Output read_on_cpu(const Scope& scope, const Output& value) {
  DeviceSpec device = DeviceSpec::parse(value.op().device());
  if (device.type.empty() || device.type == "CPU") return value;
  device.type = "CPU";
  device.index = 0;
  return ops::identity(scope.with_device(device.to_string()), value);
}

std::string device_of(const Saveable& saveable) {
  const std::string& device = saveable.parts.front().value.op().device();
  for (const Saveable::Part& part : saveable.parts) {
    if (part.value.op().device() != device) {
      throw InvalidArgumentError("All tensors of a saveable object must be on the same device: " + saveable.name);
    }
  }
  return device;
}

std::vector<Shard> shards_of(const std::vector<Saveable>& saveables, bool sharded) {
  if (!sharded) return {{"", saveables}};
  std::map<std::string, std::vector<Saveable>> by_device;
  for (const Saveable& saveable : saveables) by_device[device_of(saveable)].push_back(saveable);
  std::vector<Shard> shards;
  for (auto& [device, group] : by_device) shards.push_back({device, std::move(group)});
  return shards;
}

std::vector<Saveable::Part> parts_of(const std::vector<Saveable>& saveables) {
  std::vector<Saveable::Part> parts;
  for (const Saveable& saveable : saveables) parts.insert(parts.end(), saveable.parts.begin(), saveable.parts.end());
  return parts;
}

Output filename_input(const Scope& scope, const std::string& filename) {
  const Output value = ops::constant(scope.within("filename"), Tensor::scalar(filename), "input");
  const Output name = ops::placeholder_with_default(scope, value, {}, "filename");
  return ops::placeholder_with_default(scope, name, {}, "Const");
}

struct NameInputs {
  Output tensor_names, slices;
};

NameInputs name_inputs(const Scope& scope, const std::vector<Saveable::Part>& parts) {
  std::vector<std::string> names, slices;
  for (const Saveable::Part& part : parts) {
    names.push_back(part.key);
    slices.push_back(part.slice);
  }
  return {ops::constant(scope, Tensor::of(names), "tensor_names"),
          ops::constant(scope, Tensor::of(slices), "shape_and_slices")};
}

std::vector<DType> dtypes_of(const std::vector<Saveable::Part>& parts) {
  std::vector<DType> dtypes;
  for (const Saveable::Part& part : parts) dtypes.push_back(part.value.dtype());
  return dtypes;
}

Operation add_save(const Scope& scope, const std::string& name, const std::vector<Saveable::Part>& parts,
                   const Output& filename) {
  const NameInputs names = name_inputs(scope.within(name), parts);
  std::vector<Output> inputs{filename, names.tensor_names, names.slices};
  for (const Saveable::Part& part : parts) inputs.push_back(part.value);
  return scope.add("SaveV2", name, inputs, {{"dtypes", dtypes_of(parts)}});
}

Output add_whole_save(const Scope& scope, const std::vector<Saveable::Part>& parts, const Output& filename) {
  const Operation save = add_save(scope, "SaveV2", parts, filename);
  return ops::identity(scope.with_control_dependencies({save}), filename, "control_dependency");
}

// 32 hexadecimal digits that tell savers of different things apart. The same graph gives the same ones.
std::string fingerprint(const std::vector<Shard>& shards) {
  uint64_t low = 0xcbf29ce484222325, high = 0x9ae16a3b2f90404f;  // FNV-1a, from two starts
  const auto mix = [&](const std::string& text) {
    for (const char c : text + '\0') {
      low = (low ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      high = (high ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  };
  for (const Shard& shard : shards) {
    mix(shard.device);
    for (const Saveable::Part& part : parts_of(shard.saveables)) mix(part.key + part.slice);
  }
  return fmt::format("{:016x}{:016x}", high, low);
}

// Each shard saves a bundle of its own in a temporary directory; then they are merged under the name that is fed.
Output add_sharded_save(const Scope& scope, const std::vector<Shard>& shards, const Output& filename) {
  const std::string temporary = fmt::format("_temp_{}/part", fingerprint(shards));
  const Output suffix = ops::constant(scope.within("StringJoin"), Tensor::scalar(temporary), "inputs_1");
  const Output base =
      scope.add("StringJoin", "StringJoin", {filename, suffix}, {{"separator", std::string()}}).output();
  const Output count = ops::constant(scope, Tensor::scalar(static_cast<int32_t>(shards.size())), "num_shards");
  std::vector<Output> written;
  std::vector<Operation> done;
  for (size_t i = 0; i < shards.size(); ++i) {
    const Scope there = scope.with_device(shards[i].device);
    const std::string sharded = numbered("ShardedFilename", i);
    const Output number = ops::constant(there.within(sharded), Tensor::scalar(static_cast<int32_t>(i)), "shard");
    const Output name = there.add("ShardedFilename", sharded, {base, number, count}).output();
    const Operation save = add_save(there, numbered("SaveV2", i), parts_of(shards[i].saveables), name);
    written.push_back(ops::identity(there.with_control_dependencies({save}), name, "control_dependency"));
    done.push_back(written.back().op());
  }
  const Scope after = scope.with_control_dependencies(done);
  const Output prefixes = after
                              .add("Pack", "MergeV2Checkpoints/checkpoint_prefixes", written,
                                   {{"N", static_cast<int64_t>(written.size())}, {"T", kString}, {"axis", int64_t{0}}})
                              .output();
  const Operation merge =
      after.add("MergeV2Checkpoints", "MergeV2Checkpoints", {prefixes, filename}, {{"delete_old_dirs", true}});
  return ops::identity(scope.with_control_dependencies({merge}), filename, "Identity");
}

// Reads in one go, or one saveable after the other.
class Restorer {
 public:
  Restorer(const Scope& scope, const Output& filename, bool sequentially)
      : scope_(scope), filename_(filename), sequentially_(sequentially) {}

  // The operations that put the saveables back.
  std::vector<Operation> add(const std::string& device, const std::vector<Saveable>& saveables) {
    const Scope there = scope_.with_device(device);
    std::vector<Operation> done;
    std::vector<Saveable> one_by_one = saveables;
    if (!sequentially_) done = add_together(there, &one_by_one);
    for (const Saveable& saveable : one_by_one) {
      const bool after_others = sequentially_ && !done.empty();
      const Scope after = after_others ? there.with_control_dependencies({done.back()}) : there;
      done.push_back(put_back(there, read(after, saveable.parts, saveable.optional), {saveable}).front());
    }
    return done;
  }

 private:
  // Those that a checkpoint must have, which are taken out. The others are read each by itself, since what is fed in
  // the place of all that an operation returns keeps it from running.
  std::vector<Operation> add_together(const Scope& scope, std::vector<Saveable>* saveables) {
    const auto optional =
        std::stable_partition(saveables->begin(), saveables->end(), [](auto& s) { return !s.optional; });
    const std::vector<Saveable> needed(saveables->begin(), optional);
    saveables->erase(saveables->begin(), optional);
    if (needed.empty()) return {};
    return put_back(scope, read(scope, parts_of(needed), /*optional=*/false), needed);
  }

  Operation read(const Scope& scope, const std::vector<Saveable::Part>& parts, bool optional) {
    const std::string name = numbered("RestoreV2", reads_++);
    const NameInputs names = name_inputs(scope_.within(name), parts);
    Attrs attrs{{"dtypes", dtypes_of(parts)}};
    if (optional) attrs.emplace(kOptionalAttr, true);
    return scope.add("RestoreV2", name, {filename_, names.tensor_names, names.slices}, attrs);
  }

  std::vector<Operation> put_back(const Scope& scope, const Operation& values, const std::vector<Saveable>& saveables) {
    std::vector<Operation> done;
    int next = 0;
    for (const Saveable& saveable : saveables) {
      std::vector<Output> own;
      for (size_t i = 0; i < saveable.parts.size(); ++i) own.push_back(values.output(next++));
      done.push_back(saveable.restore(scope, own));
    }
    return done;
  }

  const Scope scope_;
  const Output filename_;
  const bool sequentially_;
  size_t reads_ = 0;
};

Operation add_restore(const Scope& scope, const std::vector<Shard>& shards, const Output& filename,
                      const SaverGraphOptions& options) {
  Restorer restorer(scope, filename, options.restore_sequentially);
  std::vector<Operation> done;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::vector<Operation> of_shard = restorer.add(shards[i].device, shards[i].saveables);
    if (!options.sharded) return ops::group(scope, of_shard, "restore_all");
    done.push_back(ops::group(scope.with_device(shards[i].device), of_shard, numbered("restore_shard", i)));
  }
  return ops::group(scope, done, "restore_all");
}

}  // namespace

Operation variable_of(const Output& read) {
  const Operation op = read.op();
  return op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2" ? op.inputs()[0].op() : op;
}

bool name_tasks(const std::vector<Saveable>& saveables) {
  bool found = false;
  for (const Saveable& saveable : saveables) {
    const std::string& device = saveable.parts.front().value.op().device();
    for (const Saveable::Part& part : saveable.parts)
      if (part.value.op().device() != device) return false;
    const std::string job = device.empty() ? "" : DeviceSpec::parse(device).job;
    found = found || (!job.empty() && job != "localhost");
  }
  return found;
}

SaverNodes add_saver_nodes(const Scope& scope, const std::vector<Saveable>& saveables,
                           const SaverGraphOptions& options) {
  std::vector<Saveable> on_cpu = saveables;
  for (Saveable& saveable : on_cpu) {
    for (Saveable::Part& part : saveable.parts) part.value = read_on_cpu(scope, part.value);
  }
  const std::vector<Shard> shards = shards_of(on_cpu, options.sharded);
  const Output filename = filename_input(scope, options.filename);
  const Output save =
      options.sharded ? add_sharded_save(scope, shards, filename) : add_whole_save(scope, parts_of(on_cpu), filename);
  const Operation restore = add_restore(scope, shards, filename, options);
  return saver_nodes_at(filename, save, restore, options.sharded);
}

}  // namespace longhaul

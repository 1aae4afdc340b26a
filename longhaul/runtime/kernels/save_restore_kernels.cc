#include <fmt/format.h>

#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/runtime/kernels/kernel.h"

namespace longhaul {
namespace {

struct Names {
  std::string prefix;
  std::span<const std::string> names, slices;
};

Names names_of(const KernelContext& context, int tensors) {
  Names names{context.input(0).host.item<std::string>(), context.input(1).host.flat<std::string>(),
              context.input(2).host.flat<std::string>()};
  if (static_cast<int>(names.names.size()) != tensors || names.slices.size() != names.names.size()) {
    context.refuse(fmt::format("{} names and {} slices were given for {} tensors", names.names.size(),
                               names.slices.size(), tensors));
  }
  return names;
}

void save(KernelContext& context) {
  const int count = context.num_inputs() - 3;
  const Names names = names_of(context, count);
  BundleWriter writer(context.resources().files(), names.prefix);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const Tensor tensor = context.input(3 + i).to_host();
    if (names.slices[at].empty()) {
      writer.add(names.names[at], tensor);
    } else {
      const auto [full_shape, slice] = parse_shape_and_slice(names.slices[at]);
      writer.add_slice(names.names[at], full_shape, slice, tensor);
    }
  }
  writer.finish();
}

// What the operation asks for, after checking that its tensors are there and of the dtypes it gives on.
std::vector<BundleReader::Wanted> wanted_of(const KernelContext& context, const BundleReader& reader,
                                            const Names& names) {
  std::vector<BundleReader::Wanted> wanted;
  for (int i = 0; i < context.op().num_outputs(); ++i) {
    const auto at = static_cast<size_t>(i);
    const DType dtype = context.op().output(i).dtype();
    const int stored = reader.entry(names.names[at]).dtype;
    if (is_known_dtype(stored) && stored != dtype) {
      context.refuse(fmt::format("{} in {} has the original dtype {}, want {}", names.names[at], names.prefix,
                                 dtype_name(static_cast<DType>(stored)), dtype_name(dtype)));
    }
    wanted.push_back({.name = names.names[at]});
    if (names.slices[at].empty()) continue;
    const auto [shape, slice] = parse_shape_and_slice(names.slices[at]);
    if (shape != reader.entry(names.names[at]).shape) {
      context.refuse(fmt::format("{} in {} has shape {}, but a slice of a tensor of shape {} was requested",
                                 names.names[at], names.prefix, reader.entry(names.names[at]).shape.to_string(),
                                 shape.to_string()));
    }
    wanted.back().slice = slice;
  }
  return wanted;
}

// All tensors are read at a time, into memory that variables take without a copy.
void restore(KernelContext& context) {
  const Names names = names_of(context, context.op().num_outputs());
  const BundleReader reader(context.resources().files(), names.prefix);
  const VariableMemory& memory = context.resources().variables().memory();
  const auto make = [&memory](DType dtype, const Shape& shape) {
    const auto type = find_scalar_type(dtype);
    return type ? to_tensor(memory.make(shape.dims(), *type)) : Tensor(dtype, shape);
  };
  const std::vector<Tensor> tensors = reader.read_many(wanted_of(context, reader, names), make);
  for (size_t i = 0; i < tensors.size(); ++i) context.set_output(static_cast<int>(i), Value(tensors[i]));
}

void string_join(KernelContext& context) {
  const auto& separator = context.op().attr<std::string>("separator");
  std::string joined;
  for (int i = 0; i < context.num_inputs(); ++i) {
    joined += (i == 0 ? "" : separator) + context.input(i).host.item<std::string>();
  }
  context.set_output(0, Value(Tensor::scalar(joined)));
}

void sharded_filename(KernelContext& context) {
  const auto number = [&](int i) { return context.input(i).to_host().item<int64_t>(); };
  context.set_output(0, Value(Tensor::scalar(fmt::format("{}-{:05}-of-{:05}", context.input(0).host.item<std::string>(),
                                                         number(1), number(2)))));
}

void merge_checkpoints(KernelContext& context) {
  const auto parts = context.input(0).host.flat<std::string>();
  const bool* remove_directories = context.op().find_attr<bool>("delete_old_dirs");
  merge_bundles(context.resources().files(), {parts.begin(), parts.end()}, context.input(1).host.item<std::string>(),
                remove_directories == nullptr || *remove_directories);
}

}  // namespace

KernelTable save_restore_kernels() {
  return {{"SaveV2", {save, nullptr, KernelPlace::kHostForAny}},
          {"RestoreV2", {restore}},
          {"StringJoin", {string_join}},
          {"ShardedFilename", {sharded_filename}},
          {"MergeV2Checkpoints", {merge_checkpoints}}};
}

}  // namespace longhaul

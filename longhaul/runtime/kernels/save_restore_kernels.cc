#include <fmt/format.h>

#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/bundle_writer.h"
#include "longhaul/checkpoint/slice.h"
#include "longhaul/runtime/kernel.h"

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
    context.refuse(
        fmt::format("{} names and {} slices for {} tensors", names.names.size(), names.slices.size(), tensors));
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

void restore(KernelContext& context) {
  const Names names = names_of(context, context.op().num_outputs());
  const BundleReader reader(context.resources().files(), names.prefix);
  for (int i = 0; i < context.op().num_outputs(); ++i) {
    const auto at = static_cast<size_t>(i);
    Tensor tensor = names.slices[at].empty()
                        ? reader.read(names.names[at])
                        : reader.read_slice(names.names[at], parse_shape_and_slice(names.slices[at]).second);
    const DType wanted = context.op().output(i).dtype();
    if (tensor.dtype() != wanted) {
      context.refuse(fmt::format("{} in {} has the original dtype {}, {} is wanted", names.names[at], names.prefix,
                                 dtype_name(tensor.dtype()), dtype_name(wanted)));
    }
    context.set_output(i, Value(tensor));
  }
}

}  // namespace

KernelTable save_restore_kernels() {
  return {{"SaveV2", {save}}, {"RestoreV2", {restore}}};
}

}  // namespace longhaul

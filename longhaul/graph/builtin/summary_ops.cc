#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

OpInfo a_summary() {
  return {{{kString, {}}}};
}

OpInfo resolve_numbers(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 0, kString);
  const DType dtype = spec.inputs[1].dtype();
  if (is_floating(dtype) || is_integer(dtype) || dtype == kBool) return a_summary();
  refuse(spec, fmt::format("the values must be numbers, not {}", dtype_name(dtype)));
}

void need_max_outputs(const OperationSpec& spec, const char* attr) {
  const int64_t* given = find_attr<int64_t>(spec, attr);
  if (given != nullptr && *given < 1) refuse(spec, fmt::format("{} must be at least 1, not {}", attr, *given));
}

void need_images(const OperationSpec& spec, const Output& images) {
  const DType dtype = images.dtype();
  if (dtype != kUInt8 && dtype != kFloat && dtype != kHalf && dtype != kDouble) {
    refuse(spec, fmt::format("the images must be uint8, float, half or double, not {}", dtype_name(dtype)));
  }
  const Shape& shape = images.shape();
  bool fits = false;
  for (int64_t channels : {1, 3, 4}) fits |= shape.compatible_with({-1, -1, -1, channels});
  if (!fits) refuse(spec, "images: Tensor must be 4-D with last dim 1, 3, or 4, not " + shape.to_string());
}

OpInfo resolve_image(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 0, kString);
  need_images(spec, spec.inputs[1]);
  need_max_outputs(spec, "max_images");
  const Tensor* color = find_attr<Tensor>(spec, "bad_color");
  if (color != nullptr && (color->dtype() != kUInt8 || color->shape().rank() != 1)) {
    refuse(spec, fmt::format("bad_color must be a vector of uint8, not {}", color->to_string()));
  }
  return a_summary();
}

OpInfo resolve_audio(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_dtype(spec, 0, kString);
  need_dtype(spec, 1, kFloat);
  need_dtype(spec, 2, kFloat);
  const Shape& shape = spec.inputs[1].shape();
  if (!shape.compatible_with({-1, -1}) && !shape.compatible_with({-1, -1, -1})) {
    refuse(spec, "sounds: Tensor must be 3-D or 2-D, not " + shape.to_string());
  }
  need_max_outputs(spec, "max_outputs");
  return a_summary();
}

OpInfo resolve_tensor(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_dtype(spec, 0, kString);
  need_dtype(spec, 2, kString);
  return a_summary();
}

OpInfo resolve_merge(const OperationSpec& spec) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) need_dtype(spec, i, kString);
  return a_summary();
}

}  // namespace

ResolverTable summary_ops() {
  return {
      {"ScalarSummary", resolve_numbers}, {"HistogramSummary", resolve_numbers}, {"ImageSummary", resolve_image},
      {"AudioSummaryV2", resolve_audio},  {"TensorSummaryV2", resolve_tensor},   {"MergeSummary", resolve_merge},
  };
}

}  // namespace longhaul::builtin

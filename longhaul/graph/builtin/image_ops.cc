#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

// As many channels as asked for; 0: as many as the image has.
OpInfo resolve_decode(const OperationSpec& spec, const std::vector<int64_t>& allowed, DType dtype) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  if (!spec.inputs[0].shape().compatible_with({})) refuse(spec, "the image must be a scalar string");
  const int64_t* channels = find_attr<int64_t>(spec, "channels");
  const int64_t wanted = channels == nullptr ? 0 : *channels;
  for (int64_t possible : allowed) {
    if (possible == wanted) return {{{dtype, {-1, -1, wanted == 0 ? -1 : wanted}}}};
  }
  refuse(spec, fmt::format("channels must not be {}", wanted));
}

OpInfo resolve_decode_png(const OperationSpec& spec) {
  const DType* dtype = find_attr<DType>(spec, "dtype");
  if (dtype != nullptr && *dtype != kUInt8 && *dtype != kUInt16) {
    refuse(spec, fmt::format("dtype must be uint8 or uint16, not {}", dtype_name(*dtype)));
  }
  return resolve_decode(spec, {0, 1, 3, 4}, dtype == nullptr ? kUInt8 : *dtype);
}

// What the original knows and this does not may be there with its default.
template <typename T>
void need_default(const OperationSpec& spec, const std::string& name, const T& value) {
  const T* given = find_attr<T>(spec, name);
  if (given != nullptr && *given != value) refuse(spec, name + " can only have its default value here");
}

OpInfo resolve_decode_jpeg(const OperationSpec& spec) {
  const int64_t* ratio = find_attr<int64_t>(spec, "ratio");
  if (ratio != nullptr && *ratio != 1 && *ratio != 2 && *ratio != 4 && *ratio != 8) {
    refuse(spec, fmt::format("ratio must be 1, 2, 4 or 8, not {}", *ratio));
  }
  find_attr<bool>(spec, "fancy_upscaling");
  need_default(spec, "try_recover_truncated", false);
  need_default(spec, "acceptable_fraction", 1.0);
  need_default(spec, "dct_method", std::string());
  return resolve_decode(spec, {0, 1, 3}, kUInt8);
}

OpInfo resolve_encode_png(const OperationSpec& spec) {
  need_inputs(spec, 1);
  const DType dtype = spec.inputs[0].dtype();
  if (dtype != kUInt8 && dtype != kUInt16)
    refuse(spec, fmt::format("the image must be uint8 or uint16, not {}", dtype_name(dtype)));
  if (!spec.inputs[0].shape().compatible_with({-1, -1, -1})) {
    refuse(spec, "the image must have the shape [height, width, channels], not " + spec.inputs[0].shape().to_string());
  }
  const int64_t* compression = find_attr<int64_t>(spec, "compression");
  if (compression != nullptr && (*compression < -1 || *compression > 9)) {
    refuse(spec, fmt::format("compression must be from -1 (the default) to 9, not {}", *compression));
  }
  return {{{kString, {}}}};
}

}  // namespace

ResolverTable image_ops() {
  return {
      {"DecodePng", resolve_decode_png},
      {"DecodeJpeg", resolve_decode_jpeg},
      {"EncodePng", resolve_encode_png},
  };
}

}  // namespace longhaul::builtin

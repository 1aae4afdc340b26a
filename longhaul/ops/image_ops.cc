#include "longhaul/ops/image_ops.h"

namespace longhaul::ops {

Output decode_png(const Scope& scope, const Output& contents, int64_t channels, DType dtype, std::string_view name) {
  return scope.add("DecodePng", name, {contents}, {{"channels", channels}, {"dtype", dtype}}).output();
}

Output decode_jpeg(const Scope& scope, const Output& contents, const JpegOptions& options, std::string_view name) {
  return scope
      .add("DecodeJpeg", name, {contents},
           {{"channels", options.channels}, {"ratio", options.ratio}, {"fancy_upscaling", options.fancy_upscaling}})
      .output();
}

Output encode_png(const Scope& scope, const Output& image, int64_t compression, std::string_view name) {
  return scope.add("EncodePng", name, {image}, {{"compression", compression}, {"T", image.dtype()}}).output();
}

}  // namespace longhaul::ops

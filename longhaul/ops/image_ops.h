#pragma once

#include <cstdint>
#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul {

struct JpegOptions {
  int64_t channels = 0;         // 0: as in the image; 1 (grey) or 3 (RGB)
  int64_t ratio = 1;            // 1, 2, 4 or 8: the image is reduced by this factor while decoding
  bool fancy_upscaling = true;  // smooth colours, at some cost
};

namespace ops {

// Images of [height, width, channels]. As in TensorFlow, both operations detect the format and accept either: a JPEG
// image as uint8, with 0, 1 or 3 channels; a PNG image with a ratio of 1. Errors of both: InvalidArgumentError: it is
// neither, or of an absurd size; DataLossError: it is damaged or truncated.

// A scalar string as uint8 or uint16. `channels`: 0 as in the image, 1 grey, 3 RGB, 4 RGBA. 16 bits are reduced to 8 by
// dropping the lower half, and 8 extended to 16 by repeating them.
Output decode_png(const Scope& scope, const Output& contents, int64_t channels = 0, DType dtype = kUInt8,
                  std::string_view name = "DecodePng");
Output decode_jpeg(const Scope& scope, const Output& contents, const JpegOptions& options = {},
                   std::string_view name = "DecodeJpeg");

// An image of 1 (grey), 2 (grey, alpha), 3 or 4 channels of uint8 or uint16 as a PNG file. `compression`: 0 to 9, -1:
// zlib's default.
Output encode_png(const Scope& scope, const Output& image, int64_t compression = -1,
                  std::string_view name = "EncodePng");

}  // namespace ops
}  // namespace longhaul

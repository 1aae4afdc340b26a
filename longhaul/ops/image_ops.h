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

// Images have the shape [height, width, channels]. As in TensorFlow, both decoding operations detect the format and
// accept either, within limits: a JPEG image must be decoded to uint8 with 0, 1 or 3 channels, a PNG image with a ratio
// of 1. Errors of both: InvalidArgumentError: the bytes are neither format, or the image has an absurd size.
// DataLossError: the image is damaged or truncated.

// Decodes a scalar string to uint8 or uint16. `channels`: 0 as in the image, 1 grey, 3 RGB, 4 RGBA. To get 8 bits from
// 16, the lower half is dropped; to get 16 bits from 8, the byte is repeated.
Output decode_png(const Scope& scope, const Output& contents, int64_t channels = 0, DType dtype = kUInt8,
                  std::string_view name = "DecodePng");
Output decode_jpeg(const Scope& scope, const Output& contents, const JpegOptions& options = {},
                   std::string_view name = "DecodeJpeg");

// Encodes an image with 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels of uint8 or uint16 as a PNG file.
// `compression`: 0 to 9; -1: zlib's default.
Output encode_png(const Scope& scope, const Output& image, int64_t compression = -1,
                  std::string_view name = "EncodePng");

}  // namespace ops
}  // namespace longhaul

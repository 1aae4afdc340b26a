#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/tensor/tensor.h"

// Images as tensors of shape [height, width, channels]. Any thread may call.
//
// Errors of decoding. InvalidArgumentError: the bytes are not an image of that format, or the decoded image would be
// larger than 1 GiB, or larger than the bytes can hold (both are checked before memory is allocated). For a JPEG image,
// the limit also applies to the image before it is made grey or smaller; if it has several scans, like a progressive
// one, the limit includes all coefficients, at two bytes per sample. DataLossError: the image is damaged or ends too
// early, a JPEG image has more than 100 scans, or a PNG image has more than 4 MiB after its last row. Texts in a PNG
// image are skipped.
namespace longhaul {

// These look only at the first bytes.
bool is_png(std::string_view bytes);
bool is_jpeg(std::string_view bytes);

// Colours become grey as 0.299 red + 0.587 green + 0.114 blue, in both formats.

// Returns uint8 or uint16. `channels`: 0 as in the image (1 to 4), 1 grey, 3 RGB, 4 RGBA. To get 8 bits from 16, the
// lower half is dropped; to get 16 bits from 8, the byte is repeated.
Tensor decode_png(std::string_view bytes, int64_t channels = 0, DType dtype = kUInt8);

// Returns uint8. `channels`: 0 as in the image (1 or 3; CMYK becomes RGB), 1 grey, 3 RGB. `ratio`: the factor by which
// the image is made smaller: 1, 2, 4 or 8.
Tensor decode_jpeg(std::string_view bytes, int64_t channels = 0, int64_t ratio = 1, bool fancy_upscaling = true);

// Returns a PNG file of an image with 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels of uint8 or uint16.
// `compression`: 0 to 9, or -1. InvalidArgumentError: the tensor is not such an image.
std::string encode_png(const Tensor& image, int64_t compression = -1);

inline constexpr int64_t kMostImageBytes = int64_t{1} << 30;

// InvalidArgumentError: an image of that size is larger than kMostImageBytes, or has more than `most_pixels` pixels,
// the most that the file can hold.
void check_image_size(const char* format, uint64_t width, uint64_t height, uint64_t bytes_per_pixel,
                      uint64_t most_pixels);

}  // namespace longhaul

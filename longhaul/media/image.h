#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/tensor/tensor.h"

// Images as tensors of [height, width, channels]. Any thread.
//
// Decoding errors. InvalidArgumentError: it is not such an image, or it would be larger than 1 GiB when decoded (for a
// JPEG image also before it is made grey or smaller, and including all coefficients, two bytes for each sample, if it
// has several scans, as progressive ones do), or larger than its bytes can hold (checked before memory is allocated).
// DataLossError: it is damaged or ends too early, a JPEG image has more than 100 scans, or a PNG image more than 4 MiB
// after its last row. Texts in a PNG image are skipped.
namespace longhaul {

// By the first bytes.
bool is_png(std::string_view bytes);
bool is_jpeg(std::string_view bytes);

// Colours become grey as 0.299 red + 0.587 green + 0.114 blue, in both formats.

// As uint8 or uint16. `channels`: 0 as in the image (1 to 4), 1 grey, 3 RGB, 4 RGBA. 16 bits become 8 by dropping the
// lower half, and 8 become 16 by repetition.
Tensor decode_png(std::string_view bytes, int64_t channels = 0, DType dtype = kUInt8);

// As uint8. `channels`: 0 as in the image (1 or 3; CMYK becomes RGB), 1 grey, 3 RGB. `ratio`: 1, 2, 4 or 8, the factor
// by which the image is made smaller.
Tensor decode_jpeg(std::string_view bytes, int64_t channels = 0, int64_t ratio = 1, bool fancy_upscaling = true);

// A PNG file of an image of 1 (grey), 2 (grey, alpha), 3 or 4 channels of uint8 or uint16. `compression`: 0 to 9, or
// -1. InvalidArgumentError: not such an image.
std::string encode_png(const Tensor& image, int64_t compression = -1);

inline constexpr int64_t kMostImageBytes = int64_t{1} << 30;

// InvalidArgumentError: an image of that size is larger than kMostImageBytes, or than `most_pixels`, the most that the
// file can hold.
void check_image_size(const char* format, uint64_t width, uint64_t height, uint64_t bytes_per_pixel,
                      uint64_t most_pixels);

}  // namespace longhaul

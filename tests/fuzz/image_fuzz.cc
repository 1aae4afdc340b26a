// A PNG or JPEG image: a byte (1: JPEG; 2: 16 bits; the rest: channels, reduction), the file.
#include "longhaul/base/error.h"
#include "longhaul/media/image.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const uint8_t flags = input.byte();
  const std::string contents = input.rest();
  const int64_t channels = flags >> 2 & 7;
  try {
    if (flags & 1) {
      decode_jpeg(contents, channels, int64_t{1} << (flags >> 5 & 3), flags & 128);
    } else {
      const Tensor image = decode_png(contents, channels, flags & 2 ? kUInt16 : kUInt8);
      if (!identical(decode_png(encode_png(image), 0, image.dtype()), image)) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}

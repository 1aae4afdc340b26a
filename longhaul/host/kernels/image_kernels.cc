#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/media/image.h"

namespace longhaul {
namespace {

// Either operation takes the other's images where its attributes have a meaning for them.
void png(HostCall& call) {
  const auto bytes = call.inputs[0].item<std::string>();
  const auto channels = attr_or<int64_t>(call.op, "channels", 0);
  const auto dtype = attr_or(call.op, "dtype", kUInt8);
  if (!is_jpeg(bytes)) {
    call.results.push_back(decode_png(bytes, channels, dtype));
  } else if (dtype == kUInt8) {
    call.results.push_back(decode_jpeg(bytes, channels));
  } else {
    throw InvalidArgumentError("a JPEG image can only be decoded as uint8");
  }
}

void jpeg(HostCall& call) {
  const auto bytes = call.inputs[0].item<std::string>();
  const auto channels = attr_or<int64_t>(call.op, "channels", 0);
  const auto ratio = attr_or<int64_t>(call.op, "ratio", 1);
  if (!is_png(bytes)) {
    call.results.push_back(decode_jpeg(bytes, channels, ratio, attr_or(call.op, "fancy_upscaling", true)));
  } else if (ratio == 1) {
    call.results.push_back(decode_png(bytes, channels));
  } else {
    throw InvalidArgumentError("a PNG image can only be decoded at full size, with a ratio of 1");
  }
}

void write_png(HostCall& call) {
  call.results.push_back(Tensor::scalar(encode_png(call.inputs[0], attr_or<int64_t>(call.op, "compression", -1))));
}

}  // namespace

HostKernelTable image_host_kernels() {
  return {
      {
          {"DecodePng", named_errors<png>},
          {"DecodeJpeg", named_errors<jpeg>},
          {"EncodePng", named_errors<write_png>},
      },
      {},
  };
}

}  // namespace longhaul

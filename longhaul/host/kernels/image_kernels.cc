#include "longhaul/host/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/media/image.h"

namespace longhaul {
namespace {

template <typename T>
T attr_or(const Operation& op, const std::string& name, T otherwise) {
  const T* found = op.find_attr<T>(name);
  return found == nullptr ? otherwise : *found;
}

void png(HostCall& call) {
  call.results.push_back(decode_png(call.inputs[0].item<std::string>(), attr_or<int64_t>(call.op, "channels", 0),
                                    attr_or(call.op, "dtype", kUInt8)));
}

void jpeg(HostCall& call) {
  call.results.push_back(decode_jpeg(call.inputs[0].item<std::string>(), attr_or<int64_t>(call.op, "channels", 0),
                                     attr_or<int64_t>(call.op, "ratio", 1), attr_or(call.op, "fancy_upscaling", true)));
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

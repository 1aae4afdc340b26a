// The text of a shape and a slice, as save and restore operations have it.
#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/slice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  try {
    const auto [shape, slice] = parse_shape_and_slice({reinterpret_cast<const char*>(data), size});
    slice.to_string();
    slice_key("name", slice);
    if (!slice.extents.empty()) slice.covers(shape);
  } catch (const Error&) {
  }
  return 0;
}

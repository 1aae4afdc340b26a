// Serialized sparse tensors: a byte for the dtype, then strings with their lengths, three for each.
#include <array>

#include "longhaul/base/error.h"
#include "longhaul/host/parsing/sparse_tensor.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const DType dtype = std::array{kFloat, kInt64, kString}[input.byte() % 3];
  std::vector<std::string> parts;
  while (!input.empty()) parts.push_back(input.counted_bytes());
  parts.resize(parts.size() / 3 * 3);
  const Shape shape{static_cast<int64_t>(parts.size() / 3), 3};
  try {
    check_sparse(deserialize_many_sparse(Tensor::of<std::string>(shape, parts), dtype));
  } catch (const Error&) {
  }
  return 0;
}

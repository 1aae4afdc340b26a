#include "longhaul/trainer/batch_look.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <cstring>

#include "longhaul/trainer/default_generator.h"

namespace longhaul {
namespace {

constexpr int64_t kElements = 16;
constexpr uint64_t kBelow = uint64_t{1} << 52;  // doubles have all integers up to 2^53

}  // namespace

// FNV-1a, of elements at equal distances.
uint64_t look_at_tensor(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.is_contiguous() || tensor.numel() == 0) return 0;
  const size_t size = tensor.element_size();
  const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  uint64_t mixture = 0xcbf29ce484222325;
  const auto mix = [&mixture](unsigned char byte) { mixture = (mixture ^ byte) * 0x100000001b3; };
  const int64_t count = std::min(tensor.numel(), kElements);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i * (tensor.numel() - 1) / std::max<int64_t>(count - 1, 1));
    for (size_t byte = 0; byte < size; ++byte) mix(bytes[at * size + byte]);
  }
  return (mixture ^ (mixture >> 52)) % kBelow + 1;
}

GeneratorUse::GeneratorUse() : before_(default_generator_state()) {}

bool GeneratorUse::changed() const {
  return !at::equal(before_, default_generator_state());
}

}  // namespace longhaul

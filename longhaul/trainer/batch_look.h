#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace longhaul {

// A fingerprint of a batch, of a few of its elements, by which a restart recognises it: never 0 and below 2^53. 0: the
// batch is of a type that has none. Takes less than a microsecond.
uint64_t look_at_tensor(const at::Tensor& tensor);

// A tensor; torch::data's Example, by its data; a list, a pair or a tuple of these, by its first; a number.
template <typename Batch>
uint64_t look_at_batch(const Batch& batch) {
  if constexpr (std::is_convertible_v<const Batch&, const at::Tensor&>) {
    return look_at_tensor(batch);
  } else if constexpr (requires {
                         { batch.data } -> std::convertible_to<const at::Tensor&>;
                       }) {
    return look_at_tensor(batch.data);
  } else if constexpr (std::is_integral_v<Batch>) {
    return static_cast<uint64_t>(batch) % (uint64_t{1} << 52) + 1;
  } else if constexpr (requires {
                         batch.empty();
                         batch.front();
                       }) {
    return batch.empty() ? 0 : look_at_batch(batch.front());
  } else if constexpr (requires { batch.first; }) {
    return look_at_batch(batch.first);
  } else if constexpr (requires { std::get<0>(batch); }) {
    return look_at_batch(std::get<0>(batch));
  } else {
    return 0;
  }
}

// Whether code between the construction and changed() has drawn from libtorch's default generator.
class GeneratorUse {
 public:
  GeneratorUse();
  bool changed() const;

 private:
  at::Tensor before_;
};

}  // namespace longhaul

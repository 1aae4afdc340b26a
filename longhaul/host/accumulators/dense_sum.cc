#include <fmt/format.h>

#include <algorithm>

#include "longhaul/host/accumulators/gradient_sum.h"
#include "longhaul/host/accumulators/widened.h"

namespace longhaul {
namespace {

// The first gradient is kept as it is; memory for a sum is taken with the second.
class DenseSum final : public GradientSum {
 public:
  explicit DenseSum(GradientSpec spec) : spec_(std::move(spec)) {}

  void add(std::span<const Tensor> gradient) override {
    check(gradient[0]);
    if (count_ == 0) {
      first_ = gradient[0];
    } else {
      if (count_ == 1) sum_ = widened(first_);
      first_ = Tensor();
      with_type_of(spec_.dtype, [&](auto* type) { add_to_sum(type, gradient[0]); });
    }
    ++count_;
  }

  std::vector<Tensor> take() override {
    Tensor result = first_;
    if (count_ > 1) {
      result = sum_.dtype() == spec_.dtype ? sum_ : Tensor(spec_.dtype, sum_.shape());
      with_type_of(spec_.dtype, [&](auto* type) { reduce(type, result); });
    }
    clear();
    return {std::move(result)};
  }

  void clear() override {
    first_ = sum_ = Tensor();
    count_ = 0;
  }

 private:
  void check(const Tensor& gradient) const {
    const Shape& wanted = count_ == 0 ? spec_.shape : (count_ == 1 ? first_ : sum_).shape();
    if (gradient.dtype() != spec_.dtype) {
      throw InvalidArgumentError(fmt::format("the gradient is {}, but the accumulator is for {}",
                                             dtype_name(gradient.dtype()), dtype_name(spec_.dtype)));
    }
    if (!gradient.shape().compatible_with(wanted)) {
      throw InvalidArgumentError(
          fmt::format("Shape mismatch: expected {}, got {}", wanted.to_string(), gradient.shape().to_string()));
    }
  }

  Tensor widened(const Tensor& gradient) const {
    Tensor wide(sum_dtype(spec_.dtype), gradient.shape());
    with_type_of(spec_.dtype, [&](auto* type) { copy(type, gradient, wide); });
    return wide;
  }

  template <typename T>
  static void copy(const T*, const Tensor& from, Tensor& to) {
    std::transform(from.flat<T>().begin(), from.flat<T>().end(), to.mutable_flat<Wide<T>>().begin(),
                   [](const T& value) { return static_cast<Wide<T>>(value); });
  }

  template <typename T>
  void add_to_sum(const T*, const Tensor& gradient) {
    add_into(gradient.flat<T>().data(), gradient.num_elements(), sum_.mutable_flat<Wide<T>>().data());
  }

  template <typename T>
  void reduce(const T*, Tensor& result) const {
    divide_into(sum_.flat<Wide<T>>().data(), sum_.num_elements(),
                spec_.reduction == GradientReduction::kMean ? count_ : 1, result.mutable_flat<T>().data());
  }

  const GradientSpec spec_;
  int64_t count_ = 0;
  Tensor first_;  // if it is the only one
  Tensor sum_;    // if there are several
};

}  // namespace

std::unique_ptr<GradientSum> make_dense_sum(GradientSpec spec) {
  return std::make_unique<DenseSum>(std::move(spec));
}

}  // namespace longhaul

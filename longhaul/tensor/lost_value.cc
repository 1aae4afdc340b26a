#include "longhaul/tensor/lost_value.h"

#include <memory>
#include <utility>

namespace longhaul {

namespace {

constexpr char kLostValue = 0;  // its address is the owner kind

}  // namespace

Tensor lost_value(std::string why) {
  return Tensor::wrap(DType(), Shape{0}, nullptr, std::make_shared<const std::string>(std::move(why)), &kLostValue);
}

bool is_lost_value(const Tensor& tensor) {
  return tensor.owner_kind() == &kLostValue;
}

}  // namespace longhaul

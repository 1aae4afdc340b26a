#include "longhaul/runtime/aten/aten_tensor.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "longhaul/runtime/devices/host_copies.h"

namespace longhaul {
namespace {

constexpr char kAtenOwner = 0;  // its address marks a Tensor whose owner is an at::Tensor

constexpr std::pair<DType, at::ScalarType> kPairs[] = {
    {kFloat, at::kFloat},
    {kDouble, at::kDouble},
    {kInt32, at::kInt},
    {kUInt8, at::kByte},
    {kInt16, at::kShort},
    {kInt8, at::kChar},
    {kInt64, at::kLong},
    {kBool, at::kBool},
    {kBFloat16, at::kBFloat16},
    {kHalf, at::kHalf},
    {kComplex64, at::kComplexFloat},
    {kComplex128, at::kComplexDouble},
};

at::Tensor in_plain_memory(const at::Tensor& tensor) {
  const at::Tensor resolved = tensor.is_conj() || tensor.is_neg() ? tensor.resolve_conj().resolve_neg() : tensor;
  return (resolved.is_cpu() ? resolved : copy_to_host(resolved)).contiguous();
}

}  // namespace

std::optional<at::ScalarType> find_scalar_type(DType dtype) {
  for (const auto& [ours, theirs] : kPairs) {
    if (ours == dtype) return theirs;
  }
  return std::nullopt;
}

DType dtype_of(at::ScalarType type) {
  for (const auto& [ours, theirs] : kPairs) {
    if (theirs == type) return ours;
  }
  throw InvalidArgumentError(fmt::format("tensors of libtorch's dtype {} are not supported", at::toString(type)));
}

Shape shape_of(const at::Tensor& tensor) {
  return Shape(tensor.sizes().vec());
}

Tensor to_tensor(const at::Tensor& tensor) {
  auto owner = std::make_shared<const at::Tensor>(in_plain_memory(tensor));
  const void* data = owner->data_ptr();
  return Tensor::wrap(dtype_of(tensor.scalar_type()), shape_of(tensor), data, std::move(owner), &kAtenOwner);
}

at::Tensor to_aten(const Tensor& tensor) {
  if (tensor.owner_kind() == &kAtenOwner) return *static_cast<const at::Tensor*>(tensor.owner().get());
  if (!tensor.defined())
    throw InvalidArgumentError("cannot pass an undefined Tensor to libtorch: " + tensor.why_undefined());
  const auto type = find_scalar_type(tensor.dtype());
  if (!type) throw InvalidArgumentError(fmt::format("libtorch has no {} tensors", dtype_name(tensor.dtype())));
  void* data = const_cast<void*>(tensor.data());
  return at::from_blob(
      data, tensor.shape().dims(), [owner = tensor.owner()](void*) {}, at::TensorOptions().dtype(*type));
}

}  // namespace longhaul

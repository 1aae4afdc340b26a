#include "longhaul/binding/watches/gradient_place.h"

#include <ATen/ops/_nnz.h>
#include <ATen/ops/count_nonzero.h>

#include <algorithm>
#include <cstring>

namespace longhaul {
namespace {

// Of an IEEE number, little-endian: of -0, too, which has its sign alone.
bool is_zero(const unsigned char* element, size_t width) {
  const bool rest = std::any_of(element, element + width - 1, [](unsigned char byte) { return byte != 0; });
  return !rest && (element[width - 1] & 0x7f) == 0;
}

// The first element of a contiguous tensor of floats that is not zero.
std::optional<int64_t> first_nonzero(const at::Tensor& tensor) {
  constexpr size_t kBlock = 4096;  // a multiple of each element's size
  static constexpr unsigned char kZeros[kBlock] = {};
  const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  const size_t width = tensor.element_size();
  for (size_t block = 0; block < tensor.nbytes(); block += kBlock) {
    const size_t end = std::min(block + kBlock, tensor.nbytes());
    if (std::memcmp(bytes + block, kZeros, end - block) == 0) continue;
    for (size_t at = block; at < end; at += width) {
      if (!is_zero(bytes + at, width)) return static_cast<int64_t>(at / width);
    }
  }
  return std::nullopt;
}

// The element of a tensor that the first value of its sparse gradient is for that is not zero. A row may come with
// zeros alone: the loss does not depend on it this time.
std::optional<int64_t> first_nonzero_of_sparse(const at::Tensor& gradient) {
  if (gradient._nnz() == 0 || gradient.sparse_dim() != 1) return std::nullopt;
  const at::Tensor values = gradient._values().contiguous();
  const std::optional<int64_t> found = first_nonzero(values);
  if (!found) return std::nullopt;
  const int64_t width = values.numel() / gradient._nnz();
  return gradient._indices().select(0, 0).select(0, *found / width).item<int64_t>() * width + *found % width;
}

uint64_t bits_at(const at::Tensor& tensor, int64_t index) {
  uint64_t bits = 0;
  const size_t width = tensor.element_size();
  std::memcpy(&bits, static_cast<const unsigned char*>(tensor.data_ptr()) + static_cast<size_t>(index) * width,
              std::min(width, sizeof(bits)));
  return bits;
}

bool has_bits(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous();
}

}  // namespace

std::optional<GradientPlace> GradientPlace::of(const at::Tensor& gradient, const at::Tensor& tensor) {
  if (!gradient.defined() || !gradient.is_cpu() || !has_bits(tensor) || gradient.sizes() != tensor.sizes()) return {};
  std::optional<int64_t> index;
  if (gradient.layout() == at::kSparse) {
    index = first_nonzero_of_sparse(gradient);
  } else if (gradient.layout() == at::kStrided) {
    index = first_nonzero(gradient.contiguous());
  }
  if (!index) return {};
  return GradientPlace{*index, bits_at(tensor, *index)};
}

bool GradientPlace::has_changed(const at::Tensor& tensor) const {
  return has_bits(tensor) && index < tensor.numel() && bits_at(tensor, index) != bits;
}

const void* gradient_memory(const at::Tensor& gradient) {
  if (!gradient.defined()) return nullptr;
  if (!gradient.has_storage()) return gradient.unsafeGetTensorImpl();
  return gradient.storage().unsafeGetStorageImpl();
}

bool is_zero_gradient(const at::Tensor& gradient) {
  if (gradient.layout() == at::kSparse) return gradient._nnz() == 0 || is_zero_gradient(gradient._values());
  if (gradient.layout() != at::kStrided) return false;
  if (gradient.is_contiguous()) {
    const at::Tensor some = gradient.view(-1).narrow(0, 0, std::min<int64_t>(gradient.numel(), 256));
    if (at::count_nonzero(some).item<int64_t>() > 0) return false;
  }
  return at::count_nonzero(gradient).item<int64_t>() == 0;
}

}  // namespace longhaul

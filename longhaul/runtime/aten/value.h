#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

// Where a value is: in a host tensor, or in libtorch's memory.
enum class ValuePlace : uint8_t { kHost, kLibtorch };

// A value on an edge of a plan: an at::Tensor, or a Tensor if ATen lacks the dtype (mostly strings).
struct Value {
  at::Tensor tensor;
  Tensor host;

  Value() = default;
  Value(at::Tensor t) : tensor(std::move(t)) {}
  // An at::Tensor if ATen has the dtype.
  explicit Value(const Tensor& t) {
    if (find_scalar_type(t.dtype())) {
      tensor = to_aten(t);
    } else {
      host = t;
    }
  }

  // `place` is kHost for values used only by operations without libtorch.
  static Value placed(ValuePlace place, const Tensor& t) {
    if (place == ValuePlace::kLibtorch) return Value(t);
    Value value;
    value.host = t;
    return value;
  }

  bool defined() const { return tensor.defined() || host.defined(); }
  bool is_host() const { return host.defined(); }
  DType dtype() const { return is_host() ? host.dtype() : dtype_of(tensor.scalar_type()); }
  Shape shape() const { return is_host() ? host.shape() : shape_of(tensor); }
  Tensor to_host() const& { return is_host() || !defined() ? host : to_tensor(tensor); }
  Tensor to_host() && { return is_host() || !defined() ? std::move(host) : to_tensor(tensor); }
  void reset() {
    tensor.reset();
    if (is_host()) host = Tensor();
  }
};

}  // namespace longhaul

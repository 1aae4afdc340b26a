#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

// A dense row-major array of a dtype and a fully defined shape. A Tensor is a handle: copies share the bytes, which
// live as long as the last handle. Math on tensors is left to libtorch (longhaul/torch.h converts between the two
// without copying the bytes).
//
// Any thread may copy and read handles. Only the creator of a tensor writes its bytes, before passing it on.
class Tensor {
 public:
  Tensor() = default;                   // no tensor: kInvalid dtype
  static Tensor none(std::string why);  // no tensor; errors from reading or feeding it say why

  // Allocates uninitialised bytes (strings: empty ones), aligned to 64. InvalidArgumentError: the shape is not fully
  // defined, or its size does not fit in memory.
  Tensor(DType dtype, Shape shape);

  // Wraps bytes that `owner` keeps alive; for kString, an array of std::string. `owner_kind` is the address of a tag by
  // which a higher layer recognises the kind of owner (so that libtorch's tensors convert back to themselves).
  static Tensor wrap(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner,
                     const void* owner_kind = nullptr);

  template <typename T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, {std::move(value)});
  }
  static Tensor scalar(const char* text) { return scalar(std::string(text)); }
  template <typename T>
  static Tensor of(std::initializer_list<T> values) {
    return of<T>(Shape{static_cast<int64_t>(values.size())}, values);
  }
  template <typename T>
  static Tensor of(const std::vector<T>& values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    return of<T>(shape, values);
  }
  // InvalidArgumentError: the number of values does not match the shape.
  template <typename T>
  static Tensor of(Shape shape, const std::vector<T>& values) {
    Tensor tensor(kDTypeOf<T>, std::move(shape));
    tensor.check_count(values.size());
    T* out = static_cast<T*>(tensor.mutable_data());
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return tensor;
  }

  bool defined() const { return dtype_ != kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  size_t size_bytes() const;  // 0 for strings

  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  const void* owner_kind() const { return owner_kind_; }

  // The elements in row-major order. InvalidArgumentError: the tensor has another dtype.
  template <typename T>
  std::span<const T> flat() const {
    check_dtype(kDTypeOf<T>);
    return {static_cast<const T*>(data_), static_cast<size_t>(num_elements_)};
  }
  template <typename T>
  std::span<T> mutable_flat() {
    check_dtype(kDTypeOf<T>);
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(num_elements_)};
  }

  // The only element, whatever the shape. If T is arithmetic, the element is converted from any real dtype.
  // InvalidArgumentError: the tensor does not have exactly one element, or there is no conversion.
  template <typename T>
  T item() const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(item_as_int64());
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(item_as_double());
    } else {
      check_single();
      return flat<T>()[0];
    }
  }

  // The same bytes with another shape. InvalidArgumentError: it has another number of elements.
  Tensor reshaped(Shape shape) const;

  std::string why_undefined() const;  // a clause for messages if the tensor is not defined()

  std::string to_string(int64_t max_elements = 10) const;  // "float[2,3] {1, 2, ...}": for messages

 private:
  void check_defined() const;
  void check_dtype(DType wanted) const;
  void check_count(size_t count) const;
  void check_single() const;
  int64_t item_as_int64() const;
  double item_as_double() const;

  DType dtype_ = kInvalid;
  Shape shape_;
  int64_t num_elements_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  const void* owner_kind_ = nullptr;
};

// Whether dtype, shape and bytes are the same (a NaN equals a NaN with the same bits).
bool identical(const Tensor& a, const Tensor& b);

}  // namespace longhaul

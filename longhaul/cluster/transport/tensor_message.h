#pragma once

#include <string>

#include "longhaul/cluster/transport/slices.h"
#include "longhaul/tensor/tensor.h"

// Tensors as TensorFlow's TensorProto, encoded and decoded by hand: what is sent shares the tensor's bytes, what is
// received is copied once, into the tensor (docs/formats/task_messages.md).
namespace longhaul {

// Appends field `field` of a message, a TensorProto. Numbers above a KiB, and such strings, become slices that share
// the tensor's bytes, and keep them. InvalidArgumentError: it is not defined.
void write_tensor(SliceWriter& out, uint32_t field, const Tensor& tensor);

// Where the memory of a received tensor comes from, such as pinned memory.
using NewTensor = Tensor (*)(DType, const Shape&);
Tensor new_tensor(DType dtype, const Shape& shape);  // Tensor's own

// A TensorProto of `size` bytes off the front: dtype and shape first, then tensor_content or string_val, as
// write_tensor() and TensorFlow write them; the lists of single numbers (float_val, ...) are refused. Sizes are
// compared with the bytes that are there before memory is taken: at most these bytes, and 16 for each byte of strings.
// `what` names the tensor in messages. InvalidArgumentError: it is something else, or damaged.
Tensor read_tensor(SliceReader& in, size_t size, const std::string& what, NewTensor make = new_tensor);

}  // namespace longhaul

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What an accumulator gives for the gradients that it has.
enum class GradientReduction { kMean, kSum };

// The form of an accumulator's gradients.
struct GradientSpec {
  DType dtype = kFloat;  // a floating one
  Shape shape = Shape::unknown_rank();
  GradientReduction reduction = GradientReduction::kMean;
};

// The sum of some gradients of one variable. The sums of 16-bit gradients are kept as floats, and rounded once, when
// they are taken. One thread at a time may call.
//
// InvalidArgumentError from add(): the gradient does not fit the spec, or the gradients before it. A call that fails
// changes nothing.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  // The tensors of one gradient, which may be kept: their bytes must not change afterwards.
  virtual void add(std::span<const Tensor> gradient) = 0;
  // Returns the tensors of the mean or the sum, and begins anew. There must be a gradient.
  virtual std::vector<Tensor> take() = 0;
  virtual void clear() = 0;
};

// Of whole gradients: one tensor.
std::unique_ptr<GradientSum> make_dense_sum(GradientSpec spec);

// Of gradients of some rows: int64 indices, values with a row for each, and, unless it has no elements, the int64 shape
// of the whole table. What is taken has each row once, in ascending order, and a shape whose first size is -1. The mean
// of a row is, as in TensorFlow, over the gradients that have the row.
std::unique_ptr<GradientSum> make_row_sum(GradientSpec spec);

}  // namespace longhaul

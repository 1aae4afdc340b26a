#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "longhaul/data/dataset.h"

namespace longhaul {

// Those examples of `dataset`, stacked: each is copied once, to its place in the batch. `position` is the place of the
// first of them in the order.
//
// Exceptions from the dataset are rethrown by rethrow_from(), with the example and its position. InvalidArgumentError:
// an example has no tensors, or its tensors do not match those of the first. CancelledError: `abandoned` was set
// meanwhile; it is checked before each example.
Batch stack_examples(const Dataset& dataset, std::span<const int64_t> examples, int64_t position,
                     const BatchMemory& memory, const std::atomic<bool>& abandoned);

// The shape of a component in a batch of `count` examples.
Shape batch_shape(const Shape& example, int64_t count);

// Rethrows the exception being handled as an Error with its code, with `place` in front of its message. kOutOfRange
// becomes kInvalidArgument: a dataset has a size, so that error is not the end of the input and not a clean stop.
[[noreturn]] void rethrow_from(const std::string& place);

}  // namespace longhaul

#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "longhaul/data/dataset.h"

namespace longhaul {

// Those examples of `dataset`, stacked: each is copied once, to its place in the batch. `position` is where the first
// of them stands in the order.
//
// What the dataset throws comes out by rethrow_from(), with the example and its position. InvalidArgumentError: an
// example has no tensors, or its tensors are not like those of the first. CancelledError: `abandoned` was set
// meanwhile, which is looked at before each example.
Batch stack_examples(const Dataset& dataset, std::span<const int64_t> examples, int64_t position,
                     const BatchMemory& memory, const std::atomic<bool>& abandoned);

// Of a component of a batch of `count` examples.
Shape batch_shape(const Shape& example, int64_t count);

// Throws the exception that is being handled again: as an Error of its code, with `place` in front of its message. Of
// kOutOfRange it makes kInvalidArgument: a dataset has a size, so that is no end of the input and no clean stop.
[[noreturn]] void rethrow_from(const std::string& place);

}  // namespace longhaul

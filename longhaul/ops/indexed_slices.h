#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// A gradient of some rows of a table, like TensorFlow's IndexedSlices: values[i] is for row indices[i]. If a row occurs
// several times, its values are added.
//
// In a graph such a gradient is an ordinary tensor, the sum of these rows (`UnsortedSegmentSum`), so that it is
// accepted wherever a gradient is. Code with a rule for rows finds them by ops::indexed_slices_of, and the tensor is
// then never computed: an optimizer updates only these rows, and clipping clips the values.
struct IndexedSlices {
  Output values;    // [n, ...]
  Output indices;   // [n], int64 or int32
  Output num_rows;  // of the table: an int64 scalar
};

namespace ops {

// A gradient for a table of `num_rows` rows; at(i) is the sum of the values whose index is i. If it is computed as a
// tensor, values with a negative index are dropped, and an index of num_rows or above is an InvalidArgumentError. An
// optimizer refuses both.
Output indexed_slices(const Scope& scope, const Output& values, const Output& indices, int64_t num_rows,
                      std::string_view name = "UnsortedSegmentSum");

// The rows of which a gradient consists; nullopt: it is not a sum of rows.
std::optional<IndexedSlices> indexed_slices_of(const Output& gradient);

// The same rows with other values.
Output with_values(const Scope& scope, const IndexedSlices& slices, const Output& values,
                   std::string_view name = "UnsortedSegmentSum");

// The sum as a tensor, for an optimizer without a rule for rows. A negative index is an InvalidArgumentError too.
Output checked_sum(const Scope& scope, const IndexedSlices& slices);

// The sum of several gradients of one table, as rows; invalid if one of them is not a sum of rows.
Output join_slices(const Scope& scope, const std::vector<Output>& gradients);

}  // namespace ops
}  // namespace longhaul

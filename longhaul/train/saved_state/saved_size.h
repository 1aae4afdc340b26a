#pragma once

#include <vector>

#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// The size of a checkpoint of these tensors, as far as the graph knows it: the sizes of strings and tables are not
// known before they are read. The state of a libtorch optimizer counts from the start, although it exists only from the
// first step on (ExternalValue::expected).
struct SavedSize {
  uint64_t bytes = 0;
  bool is_all = true;  // false: there is more, of unknown size
};
SavedSize saved_size(const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul

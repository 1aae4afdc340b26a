#pragma once

#include <vector>

#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// How much a checkpoint of these tensors takes, as far as the graph tells: the sizes of strings and of tables are not
// known before they are read. What an optimizer of libtorch's keeps counts from the start, though it has it only from
// its first step on (ExternalValue::expected).
struct SavedSize {
  uint64_t bytes = 0;
  bool is_all = true;  // false: there is more, of which the size is not known
};
SavedSize saved_size(const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul

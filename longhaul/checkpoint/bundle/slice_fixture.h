#pragma once

#include <utility>
#include <vector>

#include "longhaul/checkpoint/bundle/slice.h"

namespace longhaul {

inline TensorSlice box(std::vector<TensorSlice::Extent> extents) {
  return {std::move(extents)};
}

}  // namespace longhaul

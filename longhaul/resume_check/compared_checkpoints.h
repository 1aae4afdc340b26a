#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// A tensor that differs between two checkpoints, and how: "37 of 1000 elements differ, at most by 0.25: [3,4] is 1 and
// 1.25", "only in .../model.ckpt-9".
struct TensorDifference {
  std::string name;
  std::string how;
};

struct CheckpointComparison {
  std::vector<std::string> names;           // of all tensors, sorted
  std::vector<TensorDifference> different;  // sorted by name
  std::vector<std::string> left_out;        // differ, and may: they describe the process, and no step depends on them

  bool is_same() const { return different.empty(); }
};

// Whether a difference in that tensor says nothing about the training: records of the settings with which a process
// began, which a restore only compares.
bool may_differ(const std::string& name);

// Compares two checkpoints tensor by tensor, in bits: a NaN equals the same NaN, 0 does not equal -0. Takes memory for
// two of the tensors at a time. The errors are BundleReader's.
CheckpointComparison compare_checkpoints(FileSystem& files, const std::string& a, const std::string& b);

}  // namespace longhaul

#pragma once

#include <string>

#include "longhaul/resume_check/compared_checkpoints.h"

namespace longhaul {

// What most likely made a disturbed run end with other tensors, judged by which of them differ and which are there.
struct LikelyCause {
  std::string text;     // a sentence or two, with the remedy
  std::string section;  // where more is said: "docs/guide/restarts.md#random-numbers"
};

// For a comparison that is not the same, of a program whose undisturbed runs are.
LikelyCause likely_cause(const CheckpointComparison& comparison);

}  // namespace longhaul

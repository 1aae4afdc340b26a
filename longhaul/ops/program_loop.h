#pragma once

#include "longhaul/graph/graph.h"

namespace longhaul::ops {

// The collection that has the training operation of a program with a loop of its own, such as a Trainer's: nobody but
// that loop runs it.
inline constexpr char kProgramLoop[] = "program_loop";

inline bool has_program_loop(const Graph& graph) {
  return !graph.collection(kProgramLoop).empty();
}

}  // namespace longhaul::ops

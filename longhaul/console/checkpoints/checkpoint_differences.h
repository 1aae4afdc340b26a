#pragma once

#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct DifferencesOptions {
  std::string a{}, b{};     // as in open_tensors(): two checkpoints, or one and an export of it
  double tolerance = 0;     // numbers that are no farther apart are equal; 0: the same bits
  bool with_equal = false;  // lists equal tensors too
};

// longhaul diff: which names, dtypes, shapes and values differ, and by how much at most. Memory holds a piece of each
// at a time. Something is wrong if anything differs.
Report compare_contents(FileSystem& files, const DifferencesOptions& options, const Terminal& terminal,
                        const Progress& progress = {});

}  // namespace longhaul::console

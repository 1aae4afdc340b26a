#pragma once

#include <string>
#include <vector>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct CheckOptions {
  std::vector<std::string> paths{};  // as in open_tensors()
  bool all = false;                  // of a directory all checkpoints, not only the latest
};

// longhaul verify: reads all bytes and compares their checksums, with bounded memory. Something is wrong if one is
// damaged, or cannot be read; and if a directory's latest checkpoint is not in it, or a newer one there is not whole. A
// checkpoint of a directory that is deleted meanwhile, as a training does, is not.
Report check_checkpoints(FileSystem& files, const CheckOptions& options, const Terminal& terminal,
                         const Progress& progress = {});

}  // namespace longhaul::console

#pragma once

#include <cstddef>
#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct RunListingOptions {
  std::string directory{};
  size_t last = 64;  // how many runs are listed
};

// longhaul runs: each start of a training, with its steps and the cause of its end; then where the time went. The
// journal has the last 64 runs (docs/formats/run_journal.md). NotFoundError: the directory has no journal.
Report list_runs(FileSystem& files, const RunListingOptions& options, double now, const Terminal& terminal);

}  // namespace longhaul::console

#pragma once

#include <string>
#include <vector>

#include "longhaul/console/text/report.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// longhaul pin, unpin: a pinned checkpoint is not deleted, however old. Changes the retention file of its directory
// (docs/formats/checkpoint_retention.md), also under a training that runs: its next save takes the change over. After
// unpin, a checkpoint that is no longer among the newest is deleted by the next save.
//
// `prefixes`: of checkpoints; a directory stands for its latest. NotFoundError: there is no such checkpoint, and
// nothing was changed. FailedPreconditionError: the file is there, but cannot be used: it is not replaced.
// UnavailableError: somebody else changes the file all the time: try again. ResourceExhaustedError: the disk is
// full; the message says what to do.
Report pin_checkpoints(FileSystem& files, const std::vector<std::string>& prefixes, bool is_pinned);

}  // namespace longhaul::console

#pragma once

#include <memory>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/saving/saved_values.h"

namespace longhaul {

// The values of a save that stay on their tasks (session/task_snapshots.h). Each task has a data file of its own,
// numbered in the order of their names:
//   1. The tasks are asked whether they see the checkpoint's directory (directory_probe.h).
//   2. If all do, each writes its data file there under a temporary name, at its own disk's speed. If not, the values
//      come to this process one after the other and are written while they come, at most
//      TaskSnapshots::most_in_flight() at a time.
//   3. This process does everything else, and alone gives the files their names: a BundleWriter, in both cases.
// The limit of BundleWriterOptions::max_bytes_per_second is that of all data files together.
//
// nullptr: the session cannot leave them there, or none is on another task. `with_step`: the last fetch is the step.
std::unique_ptr<SavedValues> read_on_tasks(Session& session, const SaverNodes& nodes, const std::vector<Fetch>& fetches,
                                           bool with_step);

}  // namespace longhaul

#pragma once

#include <optional>
#include <string>

#include "longhaul/io/files/file.h"
#include "longhaul/train/journal/run_history.h"

namespace longhaul {

// The last event in the journal of a directory, for programs that follow the training there (checkpoints_iterator()).
// nullopt: there is no journal, it cannot be read, or it has been replaced by its sums since the last event.
std::optional<RunEvent> last_run_event(FileSystem& files, const std::string& directory);

// Whether this event is the end of a training that nobody is expected to continue: not by an error, and not because of
// a preemption, after which the program is started again.
bool is_final_end(const RunEvent& event);

}  // namespace longhaul

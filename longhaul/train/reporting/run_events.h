#pragma once

#include <cstdint>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// What event files are told of a training besides its summaries: the events of type SessionLog.

// Readers drop what they have of this step and later ones, so it comes before the first summary of a session.
void write_start(FileWriter& writer, int64_t step);

// A checkpoint was taken. `save_path` is its path without the step, which is what tools look for.
void write_checkpoint_taken(FileWriter& writer, const std::string& save_path, const std::string& prefix);

// A checkpoint could not be saved, the n-th time in a row: a message, and the scalar checkpoint/failed_saves.
void write_failed_save(FileWriter& writer, const std::string& message, int failures_in_a_row, int64_t step);
void write_saves_work_again(FileWriter& writer, int64_t step);  // the scalar: 0

void write_stop(FileWriter& writer, const std::string& last_checkpoint);

// What was written before is in the file. Where it cannot be, the writer has logged that: events are nothing that a
// training fails for.
void flush_or_log(FileWriter& writer);

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// The events of a training run other than summaries: those of type SessionLog.

// Readers drop earlier events of this step and later ones, so it must precede the first summary of a session.
void write_start(FileWriter& writer, int64_t step);

// A checkpoint was taken. `save_path` is its path without the step, as tools expect.
void write_checkpoint_taken(FileWriter& writer, const std::string& save_path, const std::string& prefix);

// A checkpoint could not be saved, the n-th time in a row: a message, and the scalar checkpoint/failed_saves.
void write_failed_save(FileWriter& writer, const std::string& message, int failures_in_a_row, int64_t step);
void write_saves_work_again(FileWriter& writer, int64_t step);  // the scalar: 0

void write_stop(FileWriter& writer, const std::string& last_checkpoint);

// Flushes everything written so far, with FileWriter::flush_before(). The writer logs a failure: training does not fail
// because of events.
void flush_or_log(FileWriter& writer, const Deadline* deadline = nullptr);

}  // namespace longhaul

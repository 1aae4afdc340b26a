#pragma once

#include "longhaul/base/log.h"
#include "longhaul/events/file_writer.h"

namespace longhaul {

// A sink that writes messages of level `verbosity` and above to the event file, and passes all messages to `also`.
//
//   LogSink before = set_log_sink({});
//   set_log_sink(event_log_sink(sv.summary_writer(), LogLevel::kWarning, before));
//   ...
//   set_log_sink(before);
//
// The sink borrows the writer: set another sink before the writer is destroyed. The sink never waits: while the
// writer's queue is full, it drops and counts messages, and the writer logs the number from its own thread.
// FailedPreconditionError: no writer.
LogSink event_log_sink(FileWriter* writer, LogLevel verbosity = LogLevel::kWarning, LogSink also = {});

}  // namespace longhaul

#pragma once

#include "longhaul/base/log.h"
#include "longhaul/events/file_writer.h"

namespace longhaul {

// A sink that puts messages of `verbosity` and above into the event file, and gives all of them to `also`.
//
//   LogSink before = set_log_sink({});
//   set_log_sink(event_log_sink(sv.summary_writer(), LogLevel::kWarning, before));
//   ...
//   set_log_sink(before);
//
// It borrows the writer: set another sink before the writer is destroyed. It never waits: while the writer's queue is
// full messages are dropped and counted. The writer logs on its own thread that it drops them. FailedPreconditionError:
// no writer.
LogSink event_log_sink(FileWriter* writer, LogLevel verbosity = LogLevel::kWarning, LogSink also = {});

}  // namespace longhaul

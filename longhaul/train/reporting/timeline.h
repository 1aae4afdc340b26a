#pragma once

#include <string>

#include "longhaul/proto/step_stats.pb.h"

namespace longhaul {

// Returns the step as JSON that chrome://tracing and https://ui.perfetto.dev open, in the object format of "Trace Event
// Format" (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): each device is a process,
// each thread is a row, and overlapping operations get extra rows. An operation is a complete event that is named after
// its type and has its own name, type and inputs as args. Time 0 is the step's first operation.
std::string generate_chrome_trace_format(const proto::StepStats& step_stats);

}  // namespace longhaul

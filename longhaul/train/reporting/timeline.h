#pragma once

#include <string>

#include "longhaul/proto/step_stats.pb.h"

namespace longhaul {

// The step as a file that chrome://tracing and https://ui.perfetto.dev open, in the JSON object format of "Trace Event
// Format" (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): a process for each device,
// a row for each thread, and more rows where operations overlap. An operation is a complete event named after its type,
// with its own name, type and inputs as args. Time 0 is the step's first operation.
std::string generate_chrome_trace_format(const proto::StepStats& step_stats);

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/log_tail.h"
#include "longhaul/status/curves.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/journal/run_history.h"
#include "longhaul/train/saving/save_history.h"

namespace longhaul {

struct StepsReport {
  std::optional<int64_t> now;          // the global step; nullopt: not known
  int64_t last = 0;                    // at which training ends; 0: not known
  int64_t made = 0;                    // by this process, as far as seen
  double per_second = 0;               // in the last minute
  std::optional<double> seconds_left;  // until the last one
  double last_time = 0;                // when the step was last seen to grow; 0: not yet
};

struct SavesReport {
  SaveStatus status;                 // of this process
  std::optional<SaveReport> last;    // the last one that wrote a checkpoint
  std::vector<std::string> kept;     // checkpoints, oldest first
  std::string restored_from;         // empty: nothing was restored
  std::optional<SaveStatus> mirror;  // nullopt: there is none
};

// Of this process.
struct LogReport {
  std::vector<LogLine> lines;  // the last ones, oldest first
  int64_t warnings = 0, errors = 0;
};

// How a training run stands, as its own process knows it. Times are in seconds since 1970.
struct StatusReport {
  enum class Phase { kPreparing, kTraining, kEnding };

  Phase phase = Phase::kPreparing;
  std::string why;                  // what it does while it does not train
  std::string directory, host;      // the directory may be empty
  std::optional<std::string> hung;  // what hangs, in words; nullopt: nothing does
  bool watches_hangs = false;       // whether anybody looks
  double now = 0, began = 0;        // the latter: this process's part
  StepsReport steps;
  SavesReport saves;

  std::optional<RunHistory> history;   // nullopt: there is no journal
  std::optional<uint64_t> free_bytes;  // of the directory's disk; nullopt: not known yet

  LogReport log;
  std::map<std::string, CurvePoint> scalars;
  int64_t refused_scalars = 0;
  int64_t requests = 0;  // to the page
};

const char* phase_name(StatusReport::Phase phase);  // "preparing", "training", "ending"

// For /metrics, /status.json and /curves.json. Numbers that are not finite are null in JSON. Text that is not UTF-8 is
// replaced.
std::string report_as_metrics(const StatusReport& report);
std::string report_as_json(const StatusReport& report);
std::string curves_as_json(const std::map<std::string, std::vector<CurvePoint>>& curves);

}  // namespace longhaul

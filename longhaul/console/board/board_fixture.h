#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "longhaul/proto/event.pb.h"
#include "longhaul/train/journal/run_history.h"

namespace longhaul::console {

// The directory of a training, as one leaves it behind. Times are in seconds since 1970.
class WrittenRun {
 public:
  explicit WrittenRun(std::string directory, double began = 1763721934);  // makes it

  const std::string& directory() const { return directory_; }
  const std::string& event_file() const { return path_; }  // the newest

  // A further event file, with START at that step.
  void start(int64_t step);
  void scalar(const std::string& tag, int64_t step, double value);
  void summary(int64_t step, const proto::Summary& summary);
  void flush();                           // what was added stands in the file then
  void append(const std::string& bytes);  // to the event file

  void tell(const RunEvent& event);  // to the journal
  // With a meta graph that records these facts; without any, there is none.
  void checkpoint(int64_t step, const std::map<std::string, std::string>& facts = {});

 private:
  void add(proto::Event event, int64_t step);

  const std::string directory_;
  const double began_;
  int files_ = 0;
  std::string path_, records_;
  std::string journal_;
};

// A run of 1000 steps with two restarts, and one of 600 steps that still runs: scalars, histograms, images, texts,
// journals, checkpoints and options.
void write_demo_runs(const std::string& parent);

// A run with a restart at step 210 and a rollback from step 451 to 430.
void write_run_with_rollback(const std::string& directory);

// Trainings in many states, as they stand at this time: "ended", "events" (nothing but event files), "failed", "hangs",
// "killed", "preempted", "saves_fail" and "trains". Those that run are of this process.
void write_runs_in_states(const std::string& parent, double now);

}  // namespace longhaul::console

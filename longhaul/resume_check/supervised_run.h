#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/resume_check/run_directory.h"
#include "longhaul/resume_check/started_program.h"
#include "longhaul/resume_check/timeline.h"

namespace longhaul {

struct SupervisedRunOptions {
  std::string name{};                  // for messages: "killed"
  std::vector<std::string> command{};  // "{}" in a word stands for the directory
  std::string directory{};             // for the program's files; made
  std::string output_path{};           // for what it writes
  Seconds time_limit{600};             // for all of its starts together
  std::function<void(const std::string&)> say{};
};

// When to disturb a run: when it is where the undisturbed run was at that time, or once it has saved that step.
struct Disturbance {
  int signal = 0;
  Seconds at{0};
  std::optional<int64_t> saved_step{};
};

// A run of a program, started again whenever it was disturbed. AbortedError: the program failed, began anew although it
// had a checkpoint, or took too long; the message has its last lines. InvalidArgumentError: it cannot be started.
// InterruptedError: this process is to end.
class SupervisedRun {
 public:
  // `timeline` is that of the undisturbed run; nullptr: this is that run. The arguments outlive the object.
  SupervisedRun(const WaitedSignals& signals, FileSystem& files, SupervisedRunOptions options,
                const Timeline* timeline = nullptr);

  // Starts the program, if it does not run, lets it come so far, and sends the signal. False: it ended before,
  // complete.
  bool disturb(const Disturbance& disturbance);
  // Starts the program and has it stop after that step, as by SIGTERM: for one with a Trainer, which knows when that
  // is. False: it ended complete.
  bool stop_after(int64_t step);
  // Lets the program end, with status 0; 75 asks for another start.
  void complete();

  const Timeline& own_timeline() const { return own_; }
  // How many of its starts went on from a checkpoint that an earlier one had saved, and had something left to train.
  int resumed_starts() const { return resumed_; }
  // The newest checkpoint; nullopt: there is none.
  const std::optional<FoundCheckpoint>& newest() const { return newest_; }

 private:
  void start(std::optional<int64_t> stop_step = std::nullopt);
  bool is_complete(const FoundCheckpoint& checkpoint) const;
  // Until the program has ended, `is_reached` is true, or, an error, the time is over.
  void observe(const std::function<bool()>& is_reached);
  void note(const FoundCheckpoint& checkpoint);
  bool is_at(const Disturbance& disturbance) const;
  bool goes_on_after_end();
  void tell_disturbance(const Disturbance& disturbance, Seconds after);
  Seconds since_start() const;
  [[noreturn]] void fail(const std::string& what) const;

  const WaitedSignals& signals_;
  FileSystem& files_;
  const SupervisedRunOptions options_;
  const Timeline* const timeline_;
  const Seconds deadline_;
  Timeline own_;
  CheckpointWatch watch_;
  std::unique_ptr<StartedProgram> program_;
  std::optional<ProgramEnd> end_;              // of the latest start
  Seconds started_at_{0};                      // of the latest start
  std::optional<FoundCheckpoint> start_from_;  // the newest checkpoint then
  std::optional<FoundCheckpoint> newest_;
  Seconds progress_{0};           // where the undisturbed run was when it had the newest checkpoint
  Seconds progress_at_start_{0};  // the same, of start_from_
  int starts_ = 0;
  int resumed_ = 0;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

struct ResumeCheckOptions {
  std::vector<std::string> command{};  // of the program; "{}" in a word stands for a run's own directory
  std::string keep{};                  // where the runs' files stay: a new or empty directory; empty: they are removed
  int kills = 3;                       // of the run that is killed; 0: there is no such run
  int stops = 3;                       // of the run that is stopped by SIGTERM; 0: there is no such run
  int64_t epoch_steps = 0;             // in an epoch; 0: as a Trainer's checkpoints tell, if they do
  Seconds time_limit{600};             // for each run, its starts together
  uint64_t seed = 1;                   // for the moments
  std::function<void(const std::string&)> say{};  // called with a line of progress at a time
};

struct ResumeCheckResult {
  bool is_same = false;
  std::string text;  // what was found, in a few lines
};

// Runs a training program undisturbed; again, killed at random moments; and again, stopped by SIGTERM in several
// places, and compares the newest checkpoints of the runs tensor by tensor. Where they differ, a second undisturbed run
// shows whether restarts are the cause at all. Each run has its own directory: the program gets it for "{}" in its
// arguments, and in the environment variable LONGHAUL_RESUME_CHECK_DIR.
//
//   const ResumeCheckResult result = check_resume({.command = {"./train", "--logdir={}"}, .say = print_line});
//
// InvalidArgumentError: it was not used as it should be: the program cannot be started, or wrote no checkpoint there.
// AbortedError: a run failed, took too long, began anew, or no disturbance came after a checkpoint, so that nothing is
// shown. InterruptedError (waited_signals.h): SIGINT, SIGTERM or SIGHUP; the programs have ended. Errors of reading
// checkpoints are BundleReader's. For a process with one thread.
ResumeCheckResult check_resume(const ResumeCheckOptions& options, FileSystem& files = FileSystem::real());

}  // namespace longhaul

#include "longhaul/resume_check/supervised_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr int kStartMeAgain = 75;  // EX_TEMPFAIL, as PreemptionOptions::exit_status
constexpr Seconds kLook{0.02};     // between looks at the directory
// longhaul/trainer/checked_run.cc reads them, too.
constexpr char kDirectoryVariable[] = "LONGHAUL_RESUME_CHECK_DIR";
constexpr char kStopVariable[] = "LONGHAUL_RESUME_CHECK_STOP_STEP";

std::vector<std::string> with_directory(std::vector<std::string> command, const std::string& directory) {
  for (std::string& word : command) {
    for (size_t at = 0; (at = word.find("{}", at)) != std::string::npos; at += directory.size()) {
      word.replace(at, 2, directory);
    }
  }
  return command;
}

Seconds now() {
  return Clock::real().now();
}

}  // namespace

SupervisedRun::SupervisedRun(const WaitedSignals& signals, FileSystem& files, SupervisedRunOptions options,
                             const Timeline* timeline)
    : signals_(signals),
      files_(files),
      options_(std::move(options)),
      timeline_(timeline),
      deadline_(now() + options_.time_limit),
      watch_(files, options_.directory) {
  files_.make_directories(options_.directory);
}

Seconds SupervisedRun::since_start() const {
  return now() - started_at_;
}

void SupervisedRun::fail(const std::string& what) const {
  const std::string lines = last_lines(files_, options_.output_path);
  throw AbortedError(fmt::format("{}: {}. {}", options_.name, what,
                                 lines.empty() ? "It has written nothing" : "Its last lines:\n" + lines));
}

// Whether nothing is left to train after that checkpoint.
bool SupervisedRun::is_complete(const FoundCheckpoint& checkpoint) const {
  return checkpoint.step && timeline_ != nullptr && timeline_->has_steps() &&
         *checkpoint.step >= timeline_->steps().back();
}

void SupervisedRun::start(std::optional<int64_t> stop_step) {
  start_from_ = newest_;
  progress_at_start_ = progress_;
  end_.reset();
  started_at_ = now();
  ProgramToStart program{.command = with_directory(options_.command, options_.directory),
                         .environment = {fmt::format("{}={}", kDirectoryVariable, options_.directory)},
                         .output_path = options_.output_path};
  if (stop_step) program.environment.push_back(fmt::format("{}={}", kStopVariable, *stop_step));
  program_ = std::make_unique<StartedProgram>(signals_, program);
  ++starts_;
  if (start_from_ && !is_complete(*start_from_)) ++resumed_;
}

void SupervisedRun::note(const FoundCheckpoint& checkpoint) {
  const bool is_beside = start_from_ && directory_name(checkpoint.prefix) == directory_name(start_from_->prefix);
  if (is_beside && checkpoint.step && start_from_->step && *checkpoint.step < *start_from_->step) {
    fail(
        fmt::format("started again with {}, it saved {}: it began anew. The program must restore the newest "
                    "checkpoint when it starts",
                    start_from_->prefix, base_name(checkpoint.prefix)));
  }
  if (checkpoint.step && starts_ == 1) own_.add(*checkpoint.step, since_start());
  newest_ = checkpoint;
  const bool is_known = timeline_ != nullptr && timeline_->has_steps() && checkpoint.step;
  progress_ = is_known ? timeline_->at(*checkpoint.step) : progress_at_start_ + since_start();
}

void SupervisedRun::observe(const std::function<bool()>& is_reached) {
  while (!end_) {
    for (const FoundCheckpoint& checkpoint : watch_.look()) note(checkpoint);
    if (is_reached()) return;
    if (now() >= deadline_) {
      fail(fmt::format("not over after {:.3g} s (--timeout sets the limit)", options_.time_limit.count()));
    }
    // wait: polls: its end is notified, but new checkpoints would need a second thread, and it forks
    end_ = program_->wait_until(std::min(now() + kLook, deadline_));
  }
  for (const FoundCheckpoint& checkpoint : watch_.look()) note(checkpoint);
  program_.reset();
}

bool SupervisedRun::is_at(const Disturbance& disturbance) const {
  if (disturbance.saved_step) return newest_ && newest_->step.value_or(0) >= *disturbance.saved_step;
  const Seconds again = start_from_ ? timeline_->start() : Seconds{0};  // the program's own beginning
  return since_start() >= disturbance.at - progress_at_start_ + again;
}

// Whether a program that ended by itself is to be started again; false: it is complete.
bool SupervisedRun::goes_on_after_end() {
  if (end_->is_success()) return false;
  if (end_->signal == 0 && end_->status == kStartMeAgain) return true;
  fail("it ended with " + end_->to_string());
}

void SupervisedRun::tell_disturbance(const Disturbance& disturbance, Seconds after) {
  const char* const what = disturbance.signal == SIGKILL ? "SIGKILL" : "SIGTERM";
  const std::string left = newest_ ? base_name(newest_->prefix) : "no checkpoint yet";
  options_.say(fmt::format("{}: {} after {:.2f} s, {}; its newest checkpoint: {}", options_.name, what, after.count(),
                           end_->to_string(), left));
}

bool SupervisedRun::disturb(const Disturbance& disturbance) {
  do {
    start();
    observe([&] { return is_at(disturbance); });
    if (end_ && !goes_on_after_end()) return false;
  } while (end_);
  const Seconds after = since_start();
  program_->send(disturbance.signal);
  observe([] { return false; });
  tell_disturbance(disturbance, after);
  const bool is_crash = end_->signal != 0 && end_->signal != SIGKILL && end_->signal != SIGTERM;
  if (is_crash) fail("after the signal it crashed: " + end_->to_string());
  return true;
}

void SupervisedRun::complete() {
  do {
    start();
    observe([] { return false; });
  } while (goes_on_after_end());
  own_.end(since_start());
}

bool SupervisedRun::stop_after(int64_t step) {
  start(step);
  observe([] { return false; });
  if (!goes_on_after_end()) return false;
  options_.say(fmt::format("{}: stopped as by SIGTERM after step {}, {}; its newest checkpoint: {}", options_.name,
                           step, end_->to_string(), newest_ ? base_name(newest_->prefix) : "none"));
  return true;
}

}  // namespace longhaul

#include "longhaul/resume_check/resume_check.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>

#include "longhaul/base/first_names.h"
#include "longhaul/resume_check/compared_checkpoints.h"
#include "longhaul/resume_check/likely_cause.h"
#include "longhaul/resume_check/supervised_run.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;

// The folder of all runs: kept, or removed with this object.
class Workplace {
 public:
  Workplace(FileSystem& files, const std::string& keep) : is_kept_(!keep.empty()) {
    path_ = is_kept_ ? fs::absolute(keep).lexically_normal().string()
                     : (fs::temp_directory_path() / "longhaul-resume-check-XXXXXX").string();
    if (!is_kept_ && mkdtemp(path_.data()) == nullptr) throw_errno(errno, "make " + path_);
    if (!is_kept_) return;
    files.make_directories(path_);
    if (files.list(path_).empty()) return;
    throw InvalidArgumentError(path_ + " is not empty: let --keep name a new directory");
  }
  ~Workplace() {
    std::error_code ignored;
    if (!is_kept_) fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  const bool is_kept_;
  std::string path_;
};

// The same moments from the same seed, on every machine.
class Moments {
 public:
  explicit Moments(uint64_t seed) : random_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 random_;
};

constexpr double kLatest = 0.95;  // of the undisturbed run's time

class Check {
 public:
  Check(const ResumeCheckOptions& options, FileSystem& files)
      : options_(options), files_(files), work_(files, options.keep), moments_(options.seed) {}

  ResumeCheckResult run() {
    run_undisturbed();
    if (options_.kills > 0) disturb("killed", kill_moments());
    if (options_.stops > 0) disturb("stopped", stop_moments());
    ResumeCheckResult result{.is_same = true, .text = ""};
    if (options_.kills > 0) compare("killed", &result);
    if (options_.stops > 0) compare("stopped", &result);
    if (!result.is_same) explain(&result);
    return result;
  }

 private:
  std::string directory(const std::string& run) const { return work_.file(run); }

  SupervisedRun make_run(const std::string& name, const Timeline* timeline) {
    return {signals_,
            files_,
            {.name = name,
             .command = options_.command,
             .directory = directory(name),
             .output_path = work_.file(name + ".log"),
             .time_limit = options_.time_limit,
             .say = options_.say},
            timeline};
  }

  void run_undisturbed() {
    SupervisedRun run = make_run("undisturbed", nullptr);
    run.complete();
    timeline_ = run.own_timeline();
    const auto last = last_committed(files_, directory("undisturbed"));
    if (!last) {
      throw InvalidArgumentError(
          fmt::format("the program wrote no checkpoint into its directory, {}: name the directory by {{}} in its "
                      "arguments (longhaul "
                      "resume-check -- ./train --logdir={{}}), or let the program use the environment variable "
                      "LONGHAUL_RESUME_CHECK_DIR",
                      directory("undisturbed")));
    }
    const std::optional<EpochPosition> position = epoch_position_in(files_, last->prefix);
    epoch_steps_ = options_.epoch_steps > 0 || !position ? options_.epoch_steps : position->size;
    has_trainer_ = position.has_value();
    options_.say(fmt::format("undisturbed: {:.2f} s, {}", timeline_.total().count(), base_name(last->prefix)));
  }

  // One in each of as many equal parts of the run, from its first checkpoint on.
  std::vector<Disturbance> kill_moments() {
    const double total = timeline_.total().count();
    const double first = timeline_.has_steps() ? timeline_.at(timeline_.steps().front()).count() : 0;
    const double low = first < kLatest / 2 * total ? first : total / 10;
    const double part = (kLatest * total - low) / options_.kills;
    std::vector<Disturbance> moments;
    for (int i = 0; i < options_.kills; ++i) {
      moments.push_back({.signal = SIGKILL, .at = Seconds{moments_.between(low + i * part, low + (i + 1) * part)}});
    }
    return moments;
  }

  // At random, right after a checkpoint, at random, ...; the last place is an epoch's last step: about that, if there
  // is no Trainer, which stops there by itself.
  std::vector<Disturbance> stop_moments() {
    const double part = kLatest * timeline_.total().count() / options_.stops;
    std::vector<Disturbance> moments;
    for (int i = 0; i < options_.stops; ++i) {
      const double low = i * part, high = low + part;
      Disturbance moment{.signal = SIGTERM, .at = Seconds{moments_.between(low + part / 4, high)}};
      if (i + 1 == options_.stops && epoch_steps_ > 0) {
        moment.at = end_of_epoch(low, high);
      } else if (i % 2 == 1) {
        moment.saved_step = checkpoint_between(low, high);
      }
      moments.push_back(moment);
    }
    return moments;
  }

  std::optional<int64_t> checkpoint_between(double low, double high) const {
    for (const int64_t step : timeline_.steps()) {
      const double at = timeline_.at(step).count();
      if (at >= low && at < high) return step;
    }
    return std::nullopt;
  }

  // The time of the last step of the last epoch that ends then, or else of the last one before.
  Seconds end_of_epoch(double low, double high) const {
    if (!timeline_.has_steps()) return Seconds{(low + high) / 2};
    for (int64_t step = timeline_.steps().back() / epoch_steps_ * epoch_steps_; step > 0; step -= epoch_steps_) {
      if (timeline_.at(step).count() < high) return timeline_.at(step);
    }
    return Seconds{high};
  }

  // The last step of the last whole epoch before the end that is still to come; the run's own last one, if none is.
  int64_t epoch_end_after(const std::optional<FoundCheckpoint>& newest) const {
    const auto position = newest ? epoch_position_in(files_, newest->prefix) : std::nullopt;
    const int64_t step = newest ? newest->step.value_or(0) : 0, last = timeline_.steps().back();
    int64_t end = step - (position ? position->taken : 0) + epoch_steps_;
    if (end <= step) end += epoch_steps_;
    while (end + epoch_steps_ < last) end += epoch_steps_;
    return std::min(end, last);
  }

  bool is_at_epoch_end(const Disturbance& moment, bool is_last) const {
    return moment.signal == SIGTERM && is_last && has_trainer_ && epoch_steps_ > 0 && timeline_.has_steps();
  }

  void disturb(const std::string& name, const std::vector<Disturbance>& moments) {
    SupervisedRun run = make_run(name, &timeline_);
    bool is_over = false;
    for (size_t i = 0; i < moments.size() && !is_over; ++i) {
      const bool at_epoch_end = is_at_epoch_end(moments[i], i + 1 == moments.size());
      is_over = at_epoch_end ? !run.stop_after(epoch_end_after(run.newest())) : !run.disturb(moments[i]);
      if (is_over) options_.say(fmt::format("{}: it was over before disturbance {}", name, i + 1));
      if (!is_over) tell_epoch(name, run);
    }
    if (!is_over) run.complete();
    if (run.resumed_starts() > 0) {
      options_.say(fmt::format("{}: over; {} starts went on from a checkpoint", name, run.resumed_starts()));
      return;
    }
    throw AbortedError(fmt::format(
        "{}: no disturbance came between the first checkpoint and the end, so no start went on from a checkpoint, and "
        "nothing is shown. Let the program save more often or train longer; --kills=0 or --stops=0 leaves a run out",
        name));
  }

  void tell_epoch(const std::string& name, const SupervisedRun& run) const {
    if (epoch_steps_ <= 0 || !run.newest() || !run.newest()->step) return;
    const auto position = epoch_position_in(files_, run.newest()->prefix);
    const int64_t taken = (position ? position->taken : *run.newest()->step) % epoch_steps_;
    options_.say(taken == 0 ? fmt::format("{}: that is the last step of an epoch", name)
                            : fmt::format("{}: that is {} of {} steps into an epoch", name, taken, epoch_steps_));
  }

  static std::string with_line(std::string text, const std::string& line) { return text + line + "\n"; }

  void compare(const std::string& name, ResumeCheckResult* result) {
    const auto expected = newest_below(files_, directory("undisturbed"));
    const auto found = newest_below(files_, directory(name));
    for (const auto& [base, checkpoint] : expected) {
      const auto same_base = found.find(base);
      if (same_base == found.end()) {
        fail(result, fmt::format("{}: it has no checkpoint {}, and the undisturbed run has one", name, base));
      } else if (same_base->second.step != checkpoint.step) {
        fail(result,
             fmt::format("{}: its newest checkpoint is {}, that of the undisturbed run {}: let the program save "
                         "when it ends, after the same number of steps",
                         name, base_name(same_base->second.prefix), base_name(checkpoint.prefix)));
      } else {
        compare_pair(name, checkpoint.prefix, same_base->second.prefix, result);
      }
    }
  }

  static void fail(ResumeCheckResult* result, const std::string& line) {
    result->is_same = false;
    result->text = with_line(result->text, line);
  }

  void compare_pair(const std::string& name, const std::string& a, const std::string& b, ResumeCheckResult* result) {
    CheckpointComparison comparison = compare_checkpoints(files_, a, b);
    if (!comparison.left_out.empty()) {
      result->text = with_line(result->text, "left out: " + first_names(comparison.left_out));
    }
    if (comparison.is_same()) {
      result->text = with_line(result->text, fmt::format("{}: the same bytes in all {} variables of {}", name,
                                                         comparison.names.size(), base_name(b)));
      return;
    }
    const TensorDifference& first = comparison.different.front();
    fail(result,
         fmt::format("{}: {} of {} variables of {} differ; the first is {}: {}", name, comparison.different.size(),
                     comparison.names.size(), base_name(b), first.name, first.how));
    if (!difference_) difference_ = std::move(comparison);
  }

  // Whether restarts are the cause: what a second undisturbed run shows.
  void explain(ResumeCheckResult* result) {
    if (!difference_) return;
    options_.say("again: a second undisturbed run shows whether restarts are the cause");
    make_run("again", &timeline_).complete();
    ResumeCheckResult repeated{.is_same = true, .text = ""};
    const auto cause = difference_;
    compare("again", &repeated);
    if (!repeated.is_same) {
      result->text +=
          repeated.text +
          "Two undisturbed runs differ, too: the program does not repeat itself, whatever restarts do. If it "
          "does not call torch::manual_seed() before it makes its modules, libtorch seeds its generator from the "
          "system. Else look for a seed from the clock or std::random_device, and for several threads that add "
          "numbers up.\n";
      return;
    }
    const LikelyCause likely = likely_cause(*cause);
    result->text += fmt::format("Two undisturbed runs are the same. {}\nMore: {}\n", likely.text, likely.section);
  }

  const ResumeCheckOptions& options_;
  FileSystem& files_;
  const WaitedSignals signals_;
  const Workplace work_;
  Moments moments_;
  Timeline timeline_;
  int64_t epoch_steps_ = 0;
  bool has_trainer_ = false;                        // which stops at a step if it is told to
  std::optional<CheckpointComparison> difference_;  // the first that was found
};

}  // namespace

ResumeCheckResult check_resume(const ResumeCheckOptions& options, FileSystem& files) {
  if (options.command.empty()) {
    throw InvalidArgumentError("no command is given: longhaul resume-check -- ./train --logdir={}");
  }
  if (options.kills <= 0 && options.stops <= 0) {
    throw InvalidArgumentError("--kills=0 and --stops=0 leave nothing to check: give one of them a number");
  }
  return Check(options, files).run();
}

}  // namespace longhaul

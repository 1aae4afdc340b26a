// Trains, disturbs the training and its files in every way, and looks after each restart whether anything was lost:
//
//   soak PROGRAM [--seconds=S] [--seed=N] [--steps=N] [--width=N] [--directory=PATH] [--only=CASE,...]
//   [--without=CASE,...]
//
// PROGRAM is exact_resume_program. The first thing that is not as it should be ends it with status 1; the directory
// stays, and is named.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "tests/soak/counts.h"
#include "tests/soak/damage.h"
#include "tests/soak/expected_start.h"
#include "tests/soak/hostile_files.h"
#include "tests/soak/options.h"
#include "tests/soak/run_cases.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kLongestLog = 1 << 20;
constexpr int kPreemptedStatus = 75;  // docs/errors.md

// nullptr: none of them was chosen on the command line.
template <typename Case>
const Case* some_case(const std::vector<Case>& cases, const Options& options, Random& random) {
  std::vector<const Case*> tickets;
  for (const Case& one : cases) {
    if (is_chosen(options, one.name)) tickets.insert(tickets.end(), one.weight, &one);
  }
  return tickets.empty() ? nullptr : tickets[below(random, tickets.size())];
}

std::map<std::string, Tensor> tensors_of(const std::string& prefix) {
  const BundleReader reader(FileSystem::real(), prefix);
  std::map<std::string, Tensor> tensors;
  for (const std::string& key : reader.keys()) tensors.emplace(key, reader.read(key));
  return tensors;
}

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), random_(options.seed) {}

  void run() {
    const auto begin = SteadyClock::now();
    deadline_ = begin + std::chrono::duration_cast<SteadyClock::duration>(Seconds(options_.seconds));
    make_reference();
    while (SteadyClock::now() < deadline_) disturbed_training();
    counts_.print_table(Seconds(SteadyClock::now() - begin), options_.seed);
  }

  std::string directory() const { return training_.directory; }

 private:
  Training training_in(const std::string& name) const {
    return {options_.program, options_.directory + "/" + name, options_.steps, options_.width};
  }

  void make_reference() {
    training_ = training_in("undisturbed");
    const auto begin = SteadyClock::now();
    const auto since = [begin] { return std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin); };
    const auto process = start(training_);
    has_begun(*process);
    start_ = since();
    check_ended_well(finished(*process, kNoFault, {0}));
    length_ = since();
    const Checkpoints whole = intact_checkpoints(training_.directory);
    if (whole.empty() || whole.rbegin()->first != options_.steps) fail("the undisturbed run has no last checkpoint");
    expected_ = tensors_of(whole.rbegin()->second);
    bystanders_.emplace(options_.directory + "/bystanders", whole.rbegin()->second);
  }

  // One training, disturbed until it has come to its end in spite of it, or the time is over; then it is let go on.
  void disturbed_training() {
    training_ = training_in(fmt::format("disturbed{}", counts_.trainings++));
    training_.start = start_;
    training_.length = length_;
    bystanders_->join(training_.directory);
    expected_start_ = {};
    reached_ = 0;
    may_stay_.clear();
    bool is_done = false;
    while (!is_done && SteadyClock::now() < deadline_) {
      is_done = disturb();
      if (!is_done && below(random_, 2) == 0) damage();
      counts_.print_progress();
    }
    check_ended_well(checked([&] { return run_undisturbed(training_); }));
    check_end();
    for (const char* const ending : {"", ".output", ".output.err"}) fs::remove_all(training_.directory + ending);
  }

  // True: a run came to the end of the training.
  bool disturb() {
    const RunCase* const chosen = some_case(run_cases(), options_, random_);
    const uint64_t times = chosen == nullptr ? 1 : 1 + below(random_, chosen->most_in_a_row);
    for (uint64_t i = 0; i < times; ++i) {
      FaultyRun run = checked([&] { return chosen == nullptr ? FaultyRun{} : chosen->run(training_, random_); });
      if (run.fault.empty()) run = checked([&] { return run_and_kill(training_, random_); });
      if (run.status == 0) return true;
    }
    return false;
  }

  void damage() {
    const DamageCase* const chosen = some_case(damage_cases(), options_, random_);
    if (chosen == nullptr) return;
    const Damage damage = chosen->damage(training_.directory, *bystanders_, random_);
    if (damage.kind.empty()) return;
    ++counts_.faults[damage.kind];
    if (damage.is_checkpoint) ++counts_.damaged_checkpoints;
    expected_start_.damaged();
    for (const std::string& name : data_without_index()) may_stay_.insert(name);
    if (!damage.lost_index.empty()) run_without(damage.lost_index);
  }

  std::vector<std::string> data_without_index() const {
    std::vector<std::string> names = FileSystem::real().list(training_.directory);
    std::erase_if(names, [&](const std::string& name) {
      const auto base = base_of_data_name(name);
      return !base || fs::exists(training_.directory + "/" + *base + ".index");
    });
    return names;
  }

  // The next run goes on from the checkpoint before, says so, and keeps what there is of this one.
  void run_without(const std::string& lost_index) {
    const FaultyRun run = checked([&] { return run_and_kill(training_, random_); });
    const std::string kept = data_path(lost_index, 0, 1) + ".corrupt";
    if (!fs::exists(kept))
      fail(fmt::format("{} lost its index, but {} does not exist:\n{}", lost_index, kept, run.log));
    if (!has_line_with(run.log, base_name(lost_index), "index")) {
      fail(fmt::format("the log does not say that {} has lost its index:\n{}", lost_index, run.log));
    }
  }

  // Has a run made, and looks whether all is as it should be.
  FaultyRun checked(const std::function<FaultyRun()>& make_run) {
    const std::set<int64_t> before = whole_steps();
    const FaultyRun run = make_run();
    if (run.fault.empty()) return run;
    ++counts_.restarts;
    if (run.fault != kNoFault) ++counts_.faults[run.fault];
    if (run.status == 1) ++counts_.failed_runs;
    if (run.restored) check_restored(run, before);
    if (run.log.size() > kLongestLog)
      fail(fmt::format("the log is too long, {} bytes: {}", run.log.size(), run.log.substr(0, 2000)));
    check_end_of(run, before);
    bystanders_->check(training_.directory);
    reached_ = std::max(reached_, run.reached);
    return run;
  }

  std::set<int64_t> whole_steps() const {
    std::set<int64_t> steps;
    for (const auto& [step, prefix] : intact_checkpoints(training_.directory)) steps.insert(step);
    return steps;
  }
  static int64_t newest(const std::set<int64_t>& steps) { return steps.empty() ? -1 : *steps.rbegin(); }

  void check_restored(const FaultyRun& run, const std::set<int64_t>& before) {
    std::vector<int64_t> expected = expected_start_.of(before);
    if (expected.empty()) expected = {0};
    if (std::find(expected.begin(), expected.end(), *run.restored) == expected.end()) {
      fail(fmt::format("the run continued from step {}, not from {}:\n{}", *run.restored, fmt::join(expected, " or "),
                       run.log));
    }
    if (*run.restored < newest(before)) ++counts_.skipped;
    counts_.steps_redone += std::max<int64_t>(0, reached_ - *run.restored);
  }

  void check_end_of(const FaultyRun& run, const std::set<int64_t>& before) {
    if (std::find(run.may_end_with.begin(), run.may_end_with.end(), run.status) == run.may_end_with.end()) {
      fail(fmt::format("a run ended with status {} ({}):\n{}", run.status, run.fault, run.log));
    }
    const int64_t now = newest(whole_steps());
    if (now < newest(before)) fail(fmt::format("the newest intact checkpoint, of step {}, is gone", newest(before)));
    if (run.status == kPreemptedStatus && now < run.reached) {
      fail(fmt::format("the run was stopped at step {}, but its last checkpoint is of step {}", run.reached, now));
    }
    if (run.status == 0 && now < options_.steps && !run.fault.starts_with("bit flipped")) {
      fail(fmt::format("the run ended well ({}), but its last checkpoint is of step {}:\n{}", run.fault, now, run.log));
    }
    note_end(run, before, now);
  }

  // An error before the first step may have come after the restore.
  void note_end(const FaultyRun& run, const std::set<int64_t>& before, int64_t now) {
    const bool by_signal = run.status == 128 + SIGSEGV || run.status == 128 + SIGABRT;
    const std::vector<int64_t> tried = expected_start_.of(before);
    std::optional<int64_t> restored = run.restored;
    if (!restored && run.status == 1 && !tried.empty()) restored = tried.front();
    if (before.empty()) restored.reset();
    expected_start_.ended({.restored = restored,
                           .saved_another = now > newest(before),
                           .died = by_signal || run.status == 1,
                           .by_signal = by_signal});
  }

  void check_ended_well(const FaultyRun& run) const {
    if (run.status != 0) fail(fmt::format("an undisturbed run ended with status {}:\n{}", run.status, run.log));
  }

  // The bytes of every variable, and what lies about.
  void check_end() const {
    const Checkpoints whole = intact_checkpoints(training_.directory);
    if (whole.empty() || whole.rbegin()->first != options_.steps) fail("there is no checkpoint of the last step");
    const auto found = tensors_of(whole.rbegin()->second);
    if (found.size() != expected_.size()) fail("the last checkpoint has the wrong variables");
    for (const auto& [name, value] : expected_) {
      if (!found.contains(name) || !identical(found.at(name), value)) fail(name + " has the wrong bytes");
    }
    for (const std::string& name : data_without_index()) {
      if (!may_stay_.contains(name)) fail(name + " was left behind");
    }
    for (const std::string& name : FileSystem::real().list(training_.directory)) {
      if (name.find(".tempstate") != name.npos) fail(name + " was left behind");
    }
  }

  const Options options_;
  Random random_;
  SteadyClock::time_point deadline_;
  milliseconds start_{0}, length_{0};  // of a run that nobody disturbs
  std::optional<Bystanders> bystanders_;
  std::map<std::string, Tensor> expected_;
  Training training_;
  ExpectedStart expected_start_;
  int64_t reached_ = 0;             // by the runs of this training
  std::set<std::string> may_stay_;  // data files whose index, or what announced their deletion, was taken by a damage
  Counts counts_;
};

}  // namespace
}  // namespace longhaul::soak

int main(int argc, char** argv) {
  using namespace longhaul::soak;
  const Options options = parse(argc, argv);
  Soak soak(options);
  try {
    if (!fs::create_directories(options.directory)) throw longhaul::AlreadyExistsError(options.directory + " exists");
    soak.run();
    fs::remove_all(options.directory);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\nsoak: its files are kept in {}; the seed was {}\n", error.what(), soak.directory(),
               options.seed);
    return 1;
  }
}

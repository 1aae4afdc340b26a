// Trains, disturbs the training and its files in every way, and looks after each restart whether anything was lost:
//
//   soak PROGRAM [--seconds=S] [--seed=N] [--steps=N] [--width=N] [--directory=PATH]
//
// PROGRAM is exact_resume_program. The first thing that is not as it should be ends it with status 1; the directory
// stays, and is named.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "tests/soak/faulty_run.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

struct Options {
  std::string program, directory;
  double seconds = 60;
  uint64_t seed = 1;
  int64_t steps = 3000, width = 6000;
};

struct Counts {
  std::map<std::string, int> faults;
  int restarts = 0, trainings = 0, damaged_checkpoints = 0, passed_over = 0, failed_runs = 0;
  int64_t steps_redone = 0;
};

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
    print_table(Seconds(SteadyClock::now() - begin));
  }

  std::string directory() const { return training_.directory; }

 private:
  Training training_in(const std::string& name) const {
    return {options_.program, options_.directory + "/" + name, options_.steps, options_.width};
  }

  void make_reference() {
    const auto begin = SteadyClock::now();
    training_ = training_in("undisturbed");
    check_ended_well(run_undisturbed(training_));
    length_ = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begin);
    const auto whole = whole_checkpoints(training_.directory);
    if (whole.empty() || whole.rbegin()->first != options_.steps) fail("the undisturbed run has no last checkpoint");
    expected_ = tensors_of(whole.rbegin()->second);
  }

  // One training, disturbed until it has come to its end in spite of it, or the time is over; then it is let go on.
  void disturbed_training() {
    training_ = training_in(fmt::format("disturbed{}", counts_.trainings++));
    reached_ = 0;
    bool is_done = false;
    while (!is_done && SteadyClock::now() < deadline_) {
      const int64_t newest = newest_whole();
      const FaultyRun run = run_under_a_fault(training_, length_, random_);
      ++counts_.faults[run.fault];
      check(run, newest);
      is_done = run.status == 0;
      if (!is_done) damage();
      print_progress();
    }
    const int64_t newest = newest_whole();
    const FaultyRun last = run_undisturbed(training_);
    check(last, newest);
    check_ended_well(last);
    check_end();
    fs::remove_all(training_.directory);
  }

  int64_t newest_whole() const {
    const auto whole = whole_checkpoints(training_.directory);
    return whole.empty() ? -1 : whole.rbegin()->first;
  }

  void damage() {
    bool is_checkpoint = false;
    const std::string kind = random_() % 2 == 0 ? damage_something(training_.directory, random_, is_checkpoint) : "";
    if (kind.empty()) return;
    ++counts_.faults[kind];
    if (is_checkpoint) ++counts_.damaged_checkpoints;
  }

  // `newest`: the newest whole checkpoint as it started; -1: none.
  void check(const FaultyRun& run, int64_t newest) {
    ++counts_.restarts;
    const bool may_fail = run.fault != "none";
    const bool is_expected = run.status == 0 || run.status == 128 + 9 || (may_fail && run.status == 1);
    if (!is_expected) fail(fmt::format("a run ended with status {}:\n{}", run.status, run.log));
    if (run.status == 1) ++counts_.failed_runs;
    if (run.restored) check_restored(run, newest);
    if (newest_whole() < newest) fail(fmt::format("the newest whole checkpoint, of step {}, is gone", newest));
    reached_ = std::max(reached_, run.reached);
  }

  void check_restored(const FaultyRun& run, int64_t newest) {
    if (run.passed_over) ++counts_.passed_over;
    if (*run.restored != std::max<int64_t>(newest, 0) && !run.passed_over) {
      fail(fmt::format("it went on from step {}, and not from {}:\n{}", *run.restored, newest, run.log));
    }
    counts_.steps_redone += std::max<int64_t>(0, reached_ - *run.restored);
  }

  void check_ended_well(const FaultyRun& run) const {
    if (run.status != 0) fail(fmt::format("an undisturbed run ended with status {}:\n{}", run.status, run.log));
  }

  // The bytes of every variable, and what lies about.
  void check_end() const {
    const auto whole = whole_checkpoints(training_.directory);
    if (whole.empty() || whole.rbegin()->first != options_.steps) fail("there is no checkpoint of the last step");
    const auto found = tensors_of(whole.rbegin()->second);
    if (found.size() != expected_.size()) fail("the last checkpoint has other variables");
    for (const auto& [name, value] : expected_) {
      if (!found.contains(name) || !identical(found.at(name), value)) fail(name + " has other bytes");
    }
    for (const std::string& name : FileSystem::real().list(training_.directory)) {
      const size_t data = name.find(".data-");
      const bool is_orphan = data != name.npos && !name.ends_with(".corrupt") &&
                             !fs::exists(training_.directory + "/" + name.substr(0, data) + ".index");
      if (is_orphan || name.find(".tempstate") != name.npos) fail(name + " was left");
    }
  }

  [[noreturn]] static void fail(const std::string& what) { throw DataLossError(what); }

  void print_progress() const {
    fmt::print("soak: {} restarts, {} trainings, {} checkpoints damaged, nothing lost\n", counts_.restarts,
               counts_.trainings, counts_.damaged_checkpoints);
    std::fflush(stdout);
  }

  void print_table(Seconds lasted) const {
    int faults = 0;
    fmt::print("\n| fault | times |\n| --- | ---: |\n");
    for (const auto& [kind, times] : counts_.faults) {
      fmt::print("| {} | {} |\n", kind, times);
      faults += times;
    }
    fmt::print(
        "\n| | |\n| --- | ---: |\n| faults tried | {} |\n| restarts | {} |\n| trainings brought to their end | {} |\n",
        faults, counts_.restarts, counts_.trainings);
    fmt::print("| runs that an injected fault ended with an error | {} |\n", counts_.failed_runs);
    fmt::print("| checkpoints damaged | {} |\n", counts_.damaged_checkpoints);
    fmt::print("| checkpoints passed over for two deaths | {} |\n", counts_.passed_over);
    fmt::print("| steps made again | {} |\n| bytes lost | none |\n", counts_.steps_redone);
    fmt::print("\n{:.0f} s; to repeat the choices: --seed={}\n", lasted.count(), options_.seed);
  }

  const Options options_;
  Random random_;
  SteadyClock::time_point deadline_;
  std::chrono::milliseconds length_{0};
  std::map<std::string, Tensor> expected_;
  Training training_;
  int64_t reached_ = 0;  // by the runs of this training
  Counts counts_;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Disturbs a training in every way and looks whether anything is lost."};
  app.add_option("program", options.program, "exact_resume_program")->required();
  app.add_option("--seconds", options.seconds, "How long");
  app.add_option("--seed", options.seed, "Of all choices");
  app.add_option("--steps", options.steps, "Of each training");
  app.add_option("--width", options.width, "Of the model's layer: its checkpoints have 360 bytes for each");
  app.add_option("--directory", options.directory, "A new one; it stays if something is wrong");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.directory.empty()) {
    options.directory = fs::temp_directory_path() / fmt::format("longhaul-soak-{}", ::getpid());
  }
  return options;
}

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
    fmt::print(stderr, "soak: {}\nsoak: it is left in {}; the seed was {}\n", error.what(), soak.directory(),
               options.seed);
    return 1;
  }
}

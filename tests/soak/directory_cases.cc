#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "tests/soak/damage.h"
#include "tests/soak/hostile_files.h"
#include "tests/soak/run_cases.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

constexpr milliseconds kLongestAway{4000}, kLook{20};
constexpr int64_t kStepsOfASave = 200;  // as many steps have a checkpoint among them, and time for it

// A directory that is not where it was, as after an unmount.
class AwayDirectory {
 public:
  explicit AwayDirectory(std::string path) : path_(std::move(path)) { fs::rename(path_, away()); }

  // Looks meanwhile whether anything is made in its place. False: the process has ended.
  bool stays_for(milliseconds time, testing::Process& process) const {
    for (milliseconds waited{0}; waited < time; waited += kLook) {
      check(process);
      if (!process.runs_for(kLook)) return false;
    }
    return true;
  }
  void come_back(const testing::Process& process) const {
    check(process);
    fs::rename(away(), path_);
  }

 private:
  std::string away() const { return path_ + ".away"; }
  void check(const testing::Process& process) const {
    if (!fs::exists(fs::symlink_status(path_))) return;
    fail(fmt::format("{} was created again while it was away:\n{}", path_, process.errors()));
  }

  const std::string path_;
};

// An error may end it, where its directory is away, but only with its last checkpoint.
void check_went_on(const Training& training, const FaultyRun& run) {
  if (run.status == 128 + SIGKILL || run.reached >= training.steps / 10 * 10) return;
  fail(fmt::format("the run ended with status {} at step {} while its directory was away:\n{}", run.status, run.reached,
                   run.log));
}

FaultyRun ended_while_away(testing::Process& process, const Training& training) {
  const FaultyRun run = finished(process, "directory away until it ended", {0, 1});
  check_went_on(training, run);
  return run;
}

// Whether it was there when the directory went.
bool runs_until(testing::Process& process, const Training& training, Random& random) {
  return has_begun(process) && process.runs_for(moment(random, training.from_first_step() * 3 / 4));
}

// What a start has to keep when the index files are lost: the data and meta graphs of these, and the state file.
std::map<std::string, std::string> kept_files(const Training& training, const Checkpoints& whole) {
  std::map<std::string, std::string> kept;
  for (auto& [path, bytes] : contents_below(training.directory)) {
    const auto is_of = [&path = path](const auto& checkpoint) {
      const std::string name = fs::path(checkpoint.second).filename();
      return path.starts_with(name + ".data-") || path == name + ".meta";
    };
    if (path == kDefaultStateFile || std::any_of(whole.begin(), whole.end(), is_of)) kept[path] = bytes;
  }
  return kept;
}

std::vector<fs::path> index_files(const std::string& directory) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".index") paths.push_back(entry.path());
  }
  return paths;
}

void check_refused(const FaultyRun& run, const std::string& newest) {
  if (run.status != 1 || run.restored) {
    fail(fmt::format("the run started without an index file, and ended with status {}:\n{}", run.status, run.log));
  }
  if (!has_line_with(run.log, fs::path(newest).filename(), "index")) {
    fail(fmt::format("the log does not say that the index of {} is lost:\n{}", newest, run.log));
  }
}

}  // namespace

FaultyRun run_with_directory_away_for_a_while(const Training& training, Random& random) {
  const auto process = start(training);
  if (!runs_until(*process, training, random)) return finished(*process, kNoFault, {0});
  const AwayDirectory away(training.directory);
  const bool runs = away.stays_for(milliseconds(50) + moment(random, kLongestAway), *process);
  const int64_t left = training.steps - reached(*process);
  away.come_back(*process);
  if (!runs) return ended_while_away(*process, training);
  if (below(random, 2) == 0 && process->runs_for(moment(random, training.from_first_step()))) process->send(SIGKILL);
  return finished(*process, "directory away for a while",
                  left < kStepsOfASave ? std::vector{0, 1, 128 + SIGKILL} : std::vector{0, 128 + SIGKILL});
}

FaultyRun run_with_directory_away_until_killed(const Training& training, Random& random) {
  const auto process = start(training);
  if (!runs_until(*process, training, random)) return finished(*process, kNoFault, {0});
  const AwayDirectory away(training.directory);
  const bool runs = away.stays_for(milliseconds(50) + moment(random, kLongestAway), *process);
  process->send(SIGKILL);
  process->wait();
  away.come_back(*process);
  if (!runs) return ended_while_away(*process, training);
  const FaultyRun run = finished(*process, "directory away until it was killed", {0, 1, 128 + SIGKILL});
  check_went_on(training, run);
  return run;
}

// Only where the state file names all whole checkpoints: another one without its index may be what a save has left.
FaultyRun start_without_index_files(const Training& training, Random&) {
  const Checkpoints whole = intact_checkpoints(training.directory);
  if (whole.empty()) return {};
  for (const auto& [step, prefix] : whole) {
    if (!is_named_by_state_file(training.directory, prefix)) return {};
  }
  const fs::path lost = training.directory + ".lost";
  fs::create_directory(lost);
  for (const fs::path& index : index_files(training.directory)) fs::rename(index, lost / index.filename());
  const auto before = kept_files(training, whole);
  const FaultyRun run = finished(*start(training), "all index files lost", {1});
  check_refused(run, whole.rbegin()->second);
  const std::string difference = first_difference(before, kept_files(training, whole));
  if (!difference.empty()) fail(fmt::format("without index files, {}:\n{}", difference, run.log));
  for (const fs::path& index : index_files(lost)) fs::rename(index, training.directory / index.filename());
  fs::remove(lost);
  return run;
}

}  // namespace longhaul::soak

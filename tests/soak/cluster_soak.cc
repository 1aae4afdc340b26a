// Kills the tasks of the example's cluster at random moments, and looks after each kill whether the training goes on
// and its checkpoints are of one moment: cluster_soak PROGRAM SECONDS SEED. Or kills nobody, and looks whether a
// session is lost all the same, beside two processes that take all they get: cluster_soak PROGRAM SECONDS undisturbed.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "tests/cluster_processes.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ClusterProcesses;

constexpr std::chrono::seconds kLongestStandstill{90};
constexpr std::string_view kRestored = "Restored model from ", kLost = "the session was lost: ";

// Processes that compute without an end.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t process = ::fork();
      if (process < 0) throw InternalError("no process could be started");
      if (process == 0) compute();
      processes_.push_back(process);
    }
  }
  ~BusyProcesses() {
    for (const pid_t process : processes_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;

 private:
  [[noreturn]] static void compute() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::atomic<uint64_t> number{0};
    while (true) ++number;
  }

  std::vector<pid_t> processes_;
};

class ClusterSoak {
 public:
  ClusterSoak(const std::string& program, std::string directory, uint64_t seed)
      : directory_(std::move(directory)),
        random_(seed),
        cluster_(program, directory_,
                 {"--logdir=" + logdir(), "--steps=1000000000", "--threads=1", "--save_model_secs=0.5",
                  "--save_summaries_secs=1", "--max_wait_secs=60"}) {}

  void run(std::chrono::seconds length) {
    const auto end = steady_clock::now() + length;
    cluster_.start_all();
    await_progress();
    while (steady_clock::now() < end) {
      disturb();
      await_progress();
      fmt::print("soak: {} kills, at step {}\n", kills_, newest_);
      std::fflush(stdout);
    }
    end_training();
  }

  // Nobody is killed, so nobody may be taken for dead.
  void run_undisturbed(std::chrono::seconds length) {
    const auto end = steady_clock::now() + length;
    const BusyProcesses busy(2);
    cluster_.start_all();
    while (steady_clock::now() < end) {
      await_progress();
      for (const char* task : {"chief-0", "worker-0", "worker-1"}) {
        if (cluster_.times_logged(task, std::string(kLost)) == 0) continue;
        throw InternalError(fmt::format("{} has lost its session, although nobody was killed", task));
      }
      fmt::print("soak: nobody was taken for dead, at step {}\n", newest_);
      std::fflush(stdout);
    }
    end_training();
    faults_["session lost"] = 0;
  }

  void print_table() const {
    fmt::print("| fault | times |\n| --- | --- |\n");
    for (const auto& [fault, times] : faults_) fmt::print("| {} | {} |\n", fault, times);
    fmt::print("| steps in the last checkpoint | {} |\n", newest_);
  }

  std::string everything() const { return cluster_.everything(); }

 private:
  void end_training() {
    if (cluster_.stop_all() != 75) throw InternalError("the chief was stopped, but its status is not 75");
    check(newest());
    check_nothing_left();
  }
  std::string logdir() const { return directory_ + "/run"; }
  uint64_t below(uint64_t limit) { return random_() % limit; }
  const std::string& some_task() { return ClusterProcesses::tasks()[below(ClusterProcesses::tasks().size())]; }

  // One task, now and then two at once, or all.
  void disturb() {
    const uint64_t kind = below(10);
    std::set<std::string> victims{some_task()};
    if (kind < 3) victims.insert(some_task());
    if (kind == 9) victims.insert(ClusterProcesses::tasks().begin(), ClusterProcesses::tasks().end());
    pass(below(3000));
    const int restored = restores();
    for (const std::string& task : victims) kill(task);
    pass(below(2) * below(5000));
    const int64_t saved = step_of(newest());
    for (const std::string& task : victims) cluster_.start(task);
    const bool keeps_log = victims.count("chief-0") == 0;  // its next start has a log of its own
    if (keeps_log && (victims.count("ps-0") > 0 || victims.count("ps-1") > 0)) await_restore(restored, saved);
    ++faults_[victims.size() == 1 ? victims.begin()->substr(0, victims.begin()->find('-')) + " killed"
                                  : fmt::format("{} tasks killed at once", victims.size())];
  }

  static void pass(uint64_t time) { std::this_thread::sleep_for(milliseconds(time)); }

  void kill(const std::string& task) {
    ++kills_;
    if (!cluster_.kill(task)) throw InternalError(task + " had ended by itself:\n" + cluster_.everything());
  }

  int restores() const { return cluster_.times_logged("chief-0", std::string(kRestored)); }

  // A model whose ps has died is set back to the newest checkpoint, not to an older one.
  void await_restore(int before, int64_t saved) {
    const auto end = steady_clock::now() + kLongestStandstill;
    while (restores() <= before) {
      if (steady_clock::now() > end) {
        throw DeadlineExceededError(fmt::format("nothing was restored for {} s", kLongestStandstill.count()));
      }
      pass(50);
    }
    const std::string log = cluster_.process("chief-0").errors();
    size_t at = 0;
    for (int i = 0; i <= before; ++i) at = log.find(kRestored, at) + kRestored.size();
    const std::string prefix = log.substr(at, log.find_first_of(" \n", at) - at);
    if (step_of(prefix) < saved) {
      throw DataLossError(fmt::format("{} was restored, but step {} had been saved", prefix, saved));
    }
    ++faults_["a ps restored from the newest checkpoint"];
  }

  // A probe of a killed process stays until it is ten minutes old.
  void check_nothing_left() const {
    for (const std::string& name : FileSystem::real().list(logdir())) {
      for (const char* part : {".tempstate", ".aside"}) {
        if (name.find(part) != name.npos) throw InternalError(fmt::format("{} was left in {}", name, logdir()));
      }
    }
  }

  // Two checkpoints more, the second of which is all of what was trained after the disturbance.
  void await_progress() {
    for (int i = 0; i < 2; ++i) {
      const auto end = steady_clock::now() + kLongestStandstill;
      std::string prefix = newest();
      while (prefix.empty() || step_of(prefix) <= newest_) {
        if (steady_clock::now() > end) {
          throw DeadlineExceededError(fmt::format("no step was saved for {} s", kLongestStandstill.count()));
        }
        pass(200);
        prefix = newest();
      }
      newest_ = step_of(prefix);
      check(prefix);
    }
  }

  std::string newest() const {
    return newest_intact_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix.value_or("");
  }
  static int64_t step_of(const std::string& prefix) { return std::stoll(prefix.substr(prefix.rfind('-') + 1)); }

  // Each step is in the count of the replica that has made it, and these are on both ps tasks.
  static void check(const std::string& prefix) {
    const BundleReader reader(FileSystem::real(), prefix);
    int64_t batches = 0;
    for (const char* name : {"batches_seen_0", "batches_seen_1", "batches_seen_2"}) {
      batches += reader.read(name).item<int64_t>();
    }
    const auto step = reader.read("global_step").item<int64_t>();
    if (batches == step && step == step_of(prefix)) return;
    throw DataLossError(fmt::format("{} is of several moments: step {}, but {} batches", prefix, step, batches));
  }

  const std::string directory_;
  std::mt19937_64 random_;
  ClusterProcesses cluster_;
  std::map<std::string, int> faults_;
  int kills_ = 0;
  int64_t newest_ = -1;
};

int soak(const std::string& program, const std::string& seconds, const std::string& seed) {
  const std::string directory = fs::temp_directory_path() / fmt::format("longhaul-cluster-soak-{}", ::getpid());
  fs::create_directories(directory);
  const bool is_undisturbed = seed == "undisturbed";
  ClusterSoak soak(program, directory, is_undisturbed ? 0 : std::stoull(seed));
  try {
    const std::chrono::seconds length(std::stoll(seconds));
    is_undisturbed ? soak.run_undisturbed(length) : soak.run(length);
    soak.print_table();
    fs::remove_all(directory);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\n{}\nsoak: its files are kept in {}; the seed was {}\n", error.what(),
               soak.everything(), directory, seed);
    return 1;
  }
}

}  // namespace
}  // namespace longhaul::soak

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: cluster_soak PROGRAM SECONDS SEED|undisturbed\n");
    return 2;
  }
  return longhaul::soak::soak(argv[1], argv[2], argv[3]);
}

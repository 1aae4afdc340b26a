// How long from the start of the example to its first step, beside the start of an empty program that links libtorch?
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "benchmarks/benchmarks.h"

extern char** environ;

namespace longhaul::bench {
namespace {

// A program whose output is read here, killed when the object goes.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    const int error = posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads until `text` has come; without a text, until the program closes its output.
  void read_until(const std::string& text) {
    std::string seen;
    char buffer[4096];
    while (text.empty() || seen.find(text) == std::string::npos) {
      const ssize_t count = ::read(output_, buffer, sizeof buffer);
      if (count <= 0 && text.empty()) return;
      if (count <= 0) throw std::runtime_error("the example ended early; it said: " + seen);
      seen.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

double seconds_until(const std::vector<std::string>& command, const std::string& text) {
  return time_seconds([&] {
    Child child(command);
    child.read_until(text);
  });
}

// A directory for one run of the benchmark.
std::string new_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "longhaul_bench.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  return name;
}

Pair sample_start(bool with_checkpoint) {
  const std::string directory = new_directory();
  const std::vector<std::string> train = {FASHION_MNIST_PROGRAM, "--logdir=" + directory + "/run", "--threads=1"};
  if (with_checkpoint) {
    std::vector<std::string> short_run = train;
    short_run.push_back("--steps=10");
    Child(short_run).read_until("done step=10");
  }
  Pair pair;
  pair.ours = seconds_until(train, with_checkpoint ? "step 10 of" : "step 0 of");
  pair.beside = seconds_until({EMPTY_TORCH_PROGRAM}, "");
  std::filesystem::remove_all(directory);
  return pair;
}

}  // namespace

void add_startup_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "startup/fresh",
                  .what = "start of the example to its first step, beside an empty program with libtorch",
                  .unit = "s",
                  .goal = 0.3,
                  .bound = Bound::kAtMostMore,
                  .sample = [] { return sample_start(false); },
                  .samples = 9});
  rows.push_back({.name = "startup/restored",
                  .what = "the same with a checkpoint to restore",
                  .unit = "s",
                  .goal = 0.3,
                  .bound = Bound::kAtMostMore,
                  .sample = [] { return sample_start(true); },
                  .samples = 9});
}

}  // namespace longhaul::bench

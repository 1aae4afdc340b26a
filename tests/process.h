#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace longhaul::testing {

enum class Stdio {
  kOpen,    // what it writes goes to `output_path`, its errors to `output_path`.err
  kClosed,  // descriptors 0 to 2 are closed; what it writes to descriptor 3 goes to `output_path`
};

// A program started by a test, its output in files. Killed, if it still runs, when the object goes.
class Process {
 public:
  Process(const std::vector<std::string>& command, std::string output_path, Stdio stdio = Stdio::kOpen);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  pid_t pid() const { return pid_; }

  // The exit status, or 128 + the signal that ended it. Fails the test if it takes longer.
  int wait(std::chrono::seconds timeout = std::chrono::seconds(120));

  // Whether it still runs after that time.
  bool runs_for(std::chrono::milliseconds time);

  std::string output() const;
  std::string errors() const;
  // Waits until the output contains `text`; false if the program ended, or the time was over, without.
  bool prints(const std::string& text, std::chrono::seconds timeout = std::chrono::seconds(60));

 private:
  bool try_reap();

  const std::string output_path_;
  pid_t pid_ = -1;
  int status_ = -1;  // -1: it runs
};

}  // namespace longhaul::testing

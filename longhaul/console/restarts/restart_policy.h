#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::console {

// How a program ended.
struct ProgramEnd {
  int status = 0;           // the exit status, if it was no signal
  int signal = 0;           // that ended it; 0: none
  bool was_started = true;  // false: it could not be, though it could before

  int exit_status() const { return signal == 0 ? status : 128 + signal; }  // as shells have it
  std::string to_string() const;                                           // "exit status 75", "signal 9 (Killed)"
  bool operator==(const ProgramEnd&) const = default;
};

struct RestartOptions {
  int max_restarts = 10;  // in a row; a start that lasts for `steady` gives all of them back
  Seconds first_pause{1};
  Seconds longest_pause{300};
  Seconds steady{600};
  Seconds grace{10};  // for what the program leaves behind when it ends
};

// Whether a program that has ended is started again, and when. Exit status 75 asks for it, and a crash (a signal, or
// another status) needs it; 0 is the end, 2 is wrong usage, and 126 and 127 are a shell's that cannot start it. Each
// pause is twice the one before.
class RestartPolicy {
 public:
  explicit RestartPolicy(const RestartOptions& options) : options_(options), left_(options.max_restarts) {}

  struct Decision {
    std::optional<Seconds> pause;  // until the next start; nullopt: there is none
    std::string why;               // there is none
  };
  // `was_stopped`: this process itself was told to stop.
  Decision after(const ProgramEnd& end, Seconds lasted, bool was_stopped);

  int restarts_left() const { return left_; }

 private:
  const RestartOptions options_;
  int left_;
  Seconds pause_{0};  // the last one; 0: there was none
};

}  // namespace longhaul::console

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace longhaul::testing {

// A program on a terminal of its own (a pseudo terminal), which is its standard input, output and error, and whose
// keys reach it. Killed, if it still runs, when the object goes.
class TerminalProgram {
 public:
  explicit TerminalProgram(const std::vector<std::string>& command, unsigned short columns = 80);
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  void type(const std::string& keys);  // "\x03" is Ctrl-C
  void send(int signal) const;

  // Reads until it has shown that; false: it has ended without, or the time is over.
  bool shows(const std::string& text, std::chrono::seconds timeout = std::chrono::seconds(60));
  // The exit status, or 128 + the signal that ended it. Fails the test if it takes longer.
  int wait(std::chrono::seconds timeout = std::chrono::seconds(120));
  const std::string& shown() const { return shown_; }  // all so far, with the terminal's "\r\n" as "\n"

 private:
  bool read_more(std::chrono::milliseconds longest);  // false: nobody has the terminal any more

  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

}  // namespace longhaul::testing

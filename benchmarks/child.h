#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace longhaul::bench {

// A program whose output is read here, killed when the object goes. std::runtime_error: it cannot be started.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Kills it, and waits until it is gone.
  void end();

  // Reads until `text` has come since the start; without a text, until the program closes its output. Returns all that
  // has come. std::runtime_error: it ended before the text came.
  const std::string& read_until(const std::string& text);

 private:
  std::string seen_;
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace longhaul::bench

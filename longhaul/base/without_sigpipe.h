#pragma once

#include <csignal>

namespace longhaul {

// While it exists, a pipe that nobody reads gives this thread an error, and not the signal that ends the program.
class WithoutSigpipe {
 public:
  WithoutSigpipe();
  ~WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace longhaul

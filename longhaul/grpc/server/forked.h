#pragma once

#include <sys/types.h>

#include <string>

namespace longhaul {

// The process in which something was made that a fork does not survive: threads, connections. A child would wait for
// threads that it does not have.
class MakerProcess {
 public:
  MakerProcess();

  bool is_this() const;
  // FailedPreconditionError: this is a forked child. `what` begins the message: "the server of /job:ps/...".
  void check(const std::string& what) const;

 private:
  const pid_t pid_;
};

// FailedPreconditionError: a process that this one was forked from has used gRPC before the fork, so it must not be
// used here. `what` is about to be made.
void check_grpc_may_be_used(const std::string& what);

}  // namespace longhaul

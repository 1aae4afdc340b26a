#include "longhaul/grpc/server/forked.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

// The first process that used it; 0: none.
std::atomic<pid_t>& grpc_user() {
  static std::atomic<pid_t> user{0};
  return user;
}

[[noreturn]] void refuse_child(const std::string& what, pid_t parent) {
  throw FailedPreconditionError(fmt::format(
      "{} cannot be used in process {}, which was forked from process {}: gRPC's threads and connections are not in a "
      "forked child. Fork before the first server or session on a server is made, or start the program anew (exec)",
      what, ::getpid(), parent));
}

}  // namespace

MakerProcess::MakerProcess() : pid_(::getpid()) {}

bool MakerProcess::is_this() const {
  return ::getpid() == pid_;
}

void MakerProcess::check(const std::string& what) const {
  if (!is_this()) refuse_child(what, pid_);
}

// gRPC opens descriptors on threads of its own, at any time: from its first use on it gets none of 0 to 2, where the
// program's output would end up in them.
void check_grpc_may_be_used(const std::string& what) {
  alignas(AboveStdio) static std::byte place[sizeof(AboveStdio)];
  static const auto* const above [[maybe_unused]] = new (place) AboveStdio;  // to the end of the process
  pid_t user = 0;
  if (grpc_user().compare_exchange_strong(user, ::getpid()) || user == ::getpid()) return;
  refuse_child(what, user);
}

}  // namespace longhaul

#include "longhaul/grpc/transport/listen_error.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList look_up(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const AboveStdio above;  // it may open a socket
  const int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (status == 0) return {found, &freeaddrinfo};
  throw InvalidArgumentError(fmt::format("cannot listen on {}: {}: give an address of this machine, or 127.0.0.1:PORT",
                                         address, gai_strerror(status)));
}

int errno_of_bind(const addrinfo& candidate) {
  const AboveStdio above;
  const int descriptor = socket(candidate.ai_family, candidate.ai_socktype | SOCK_CLOEXEC, candidate.ai_protocol);
  if (descriptor < 0) return errno;
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_bound = bind(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0 && listen(descriptor, 1) == 0;
  const int error = is_bound ? 0 : errno;
  close(descriptor);
  return error;
}

int errno_of_listening(const std::string& address) {
  const AddressList candidates = look_up(address);
  for (const addrinfo* candidate = candidates.get(); candidate != nullptr; candidate = candidate->ai_next) {
    if (const int error = errno_of_bind(*candidate)) return error;
  }
  return 0;
}

}  // namespace

void throw_listen_error(const std::string& address) {
  const int error = errno_of_listening(address);
  const std::string what = fmt::format("cannot listen on {}: {}", address,
                                       error == 0 ? "gRPC refuses it" : std::generic_category().message(error));
  switch (error) {
    case EADDRINUSE:
      throw AlreadyExistsError(what +
                               ": another process has this port: stop it (`ss -tlnp` names it), or give this "
                               "task another one; port 0 lets the system choose");
    case EADDRNOTAVAIL:
      throw InvalidArgumentError(what +
                                 ": this machine does not have it: compare the task's address in the cluster "
                                 "spec with the machine that it runs on");
    case EACCES:
    case EPERM: throw PermissionDeniedError(what + ": take a port above 1023");
    default: throw UnavailableError(what + ": try again, or give the task another address");
  }
}

}  // namespace longhaul

#include "longhaul/grpc/transport/listening_sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

sockaddr_in6 all_addresses(in_port_t port) {
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = port;
  return all;
}

bool is_all_of_ipv4(const sockaddr_storage& address) {
  return address.ss_family == AF_INET && reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
}

in_port_t& port_of(sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

// A socket that listens there; below 0: none, for the reason in errno.
int listening_on(const sockaddr_storage& address) {
  const AboveStdio above;
  const int socket = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return socket;
  const int on = 1, off = 0;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ss_family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(socket, SOMAXCONN) == 0)
    return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

int listening_on_all_or_one(const sockaddr_storage& address) {
  if (is_all_of_ipv4(address)) {
    sockaddr_storage all{};
    const sockaddr_in6 of_ipv6 = all_addresses(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    std::memcpy(&all, &of_ipv6, sizeof of_ipv6);
    const int socket = listening_on(all);
    if (socket >= 0 || errno == EADDRINUSE) return socket;
  }
  return listening_on(address);
}

int port_of_socket(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(port_of(address));
}

[[noreturn]] void throw_listen_error(const std::string& address, int error) {
  const std::string what = fmt::format("cannot listen on {}: {}", address, std::generic_category().message(error));
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

}  // namespace

// An address that the machine does not have is passed by if it has another one of that name, as ::1 in a container. A
// port that the system has chosen for the first address may be taken at the next one: then another one is tried.
ListeningSockets::ListeningSockets(const std::string& address) {
  constexpr int kTries = 16;
  const AddressList candidates = look_up(address);
  int error = EADDRINUSE;
  for (int i = 0; i < kTries && error == EADDRINUSE; ++i) {
    error = listen_on_all(candidates.get());
    if (error == 0) return;
    const bool chose_port = !sockets_.empty();
    close_all();
    if (!chose_port) break;
  }
  throw_listen_error(address, error);
}

// 0, or the error of the first that fails.
int ListeningSockets::listen_on_all(const addrinfo* candidate) {
  int passed_by = EADDRNOTAVAIL;
  for (; candidate != nullptr; candidate = candidate->ai_next) {
    sockaddr_storage place{};
    std::memcpy(&place, candidate->ai_addr, candidate->ai_addrlen);
    if (port_ != 0) port_of(place) = htons(static_cast<uint16_t>(port_));
    const int socket = listening_on_all_or_one(place);
    if (socket >= 0) {
      sockets_.push_back(socket);
      port_ = port_of_socket(socket);
    } else if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) {
      passed_by = errno;
    } else {
      return errno;
    }
  }
  return sockets_.empty() ? passed_by : 0;
}

void ListeningSockets::close_all() {
  for (const int socket : sockets_) ::close(socket);
  sockets_.clear();
  port_ = 0;
}

ListeningSockets::~ListeningSockets() {
  close_all();
}

}  // namespace longhaul

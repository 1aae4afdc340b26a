#include "longhaul/status/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr int kBacklog = 128;

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);  // it works without, too
}

[[noreturn]] void refuse_port(const ListenAddress& address, int error) {
  const std::string place = fmt::format("{} port {}", address.host, address.port);
  if (error == EADDRINUSE) {
    throw UnavailableError(
        fmt::format("{} is taken by another process (`ss -ltnp 'sport = :{}'` shows which): end it, "
                    "or take another port, or port 0, which is any free one",
                    place, address.port));
  }
  throw_errno(error, "listen on " + place);
}

int port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) throw_errno(errno, "getsockname");
  const bool is_ipv6 = bound.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                       : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

}  // namespace

OwnedSocket& OwnedSocket::operator=(OwnedSocket&& other) noexcept {
  if (this == &other) return *this;
  reset();
  fd_ = other.release();
  return *this;
}

void OwnedSocket::reset() {
  if (fd_ >= 0) ::close(release());
}

// SO_REUSEADDR: a process that takes the place of a killed one need not wait until its connections are forgotten.
Listener::Listener(const ListenAddress& address) {
  const int family = address.socket_address.ss_family;
  {
    const AboveStdio above;
    socket_ = OwnedSocket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  if (!socket_.is_open()) throw_errno(errno, "make a socket");
  set_option(fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd(), reinterpret_cast<const sockaddr*>(&address.socket_address), address.size) != 0 ||
      ::listen(fd(), kBacklog) != 0) {
    refuse_port(address, errno);
  }
  port_ = port_of(fd());
}

OwnedSocket Listener::next_client() {
  const AboveStdio above;
  OwnedSocket socket(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) return socket;
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) throw_errno(errno, "accept");
  return socket;  // nobody waits, or who did has gone
}

}  // namespace longhaul

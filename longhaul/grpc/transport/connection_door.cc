#include "longhaul/grpc/transport/connection_door.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr int kPauseMs = 100;
constexpr Seconds kBetweenWarnings{10};

int new_eventfd() {
  const AboveStdio above;
  return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

rlim_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// The lowest free descriptor shows how many are in use, or nearly so.
bool has_room() {
  const rlim_t most = most_descriptors();
  if (most == RLIM_INFINITY) return true;
  const rlim_t kept = std::min<rlim_t>(64, most / 8);
  const int next = new_eventfd();
  if (next < 0) return false;
  ::close(next);
  return static_cast<rlim_t>(next) < most - kept;
}

}  // namespace

ConnectionDoor::ConnectionDoor(const std::string& address, Seconds lost_line)
    : address_(address),
      lost_line_ms_(static_cast<int>(std::clamp(lost_line.count() * 1000, 1.0, 1e9))),
      sockets_(address),
      closes_(new_eventfd()) {
  if (closes_ < 0)
    throw ResourceExhaustedError(fmt::format("cannot listen on {}: no descriptor is left (`ulimit -n`)", address));
}

ConnectionDoor::~ConnectionDoor() {
  const uint64_t one = 1;
  if (::write(closes_, &one, sizeof one) != sizeof one) log_error("the port {} does not close", address_);
  if (thread_.joinable()) thread_.join();
  ::close(closes_);
}

void ConnectionDoor::open(Take take) {
  take_ = std::move(take);
  thread_ = NamedThread("lh-accept", [this] { serve(); });
}

void ConnectionDoor::serve() {
  std::vector<pollfd> places{{.fd = closes_, .events = POLLIN, .revents = 0}};
  for (const int socket : sockets_.all()) places.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  while (true) {
    const int ready = ::poll(places.data(), places.size(), -1);  // wait: for a connection, or the end
    if (ready < 0) {
      if (errno != EINTR) wait_for_room(std::generic_category().message(errno));
      continue;
    }
    if (places[0].revents != 0) return;
    for (size_t i = 1; i < places.size(); ++i) {
      if (places[i].revents != 0) accept_all(places[i].fd);
    }
  }
}

void ConnectionDoor::accept_all(int listener) {
  while (!is_closed_within(0)) {
    if (!has_room()) return wait_for_room("the process has hardly any descriptors left");
    int connection;
    {
      const AboveStdio above;
      connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (connection >= 0) {
      set_up(connection);
      take_(listener, connection);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
      return wait_for_room(std::generic_category().message(errno));
    }
  }
}

void ConnectionDoor::set_up(int connection) const {
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_line_ms_, sizeof lost_line_ms_);
}

void ConnectionDoor::wait_for_room(const std::string& why) {
  const Seconds now = Clock::real().now();
  if (now - last_warning_ >= kBetweenWarnings) {
    last_warning_ = now;
    log_warning(
        "connections to {} wait: {} (its limit is {}). Raise the limit (RLIMIT_NOFILE, `ulimit -n`), or close what it "
        "has open (ls -l /proc/{}/fd)",
        address_, why, most_descriptors(), ::getpid());
  }
  is_closed_within(kPauseMs);
}

bool ConnectionDoor::is_closed_within(int milliseconds) const {
  pollfd closes{.fd = closes_, .events = POLLIN, .revents = 0};
  return ::poll(&closes, 1, milliseconds) > 0;  // wait: a pause, until the end
}

}  // namespace longhaul

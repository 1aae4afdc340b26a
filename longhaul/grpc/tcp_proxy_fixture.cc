#include "longhaul/grpc/tcp_proxy_fixture.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace longhaul {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

RawSocket RawSocket::listening() {
  RawSocket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(0);
  EXPECT_EQ(bind(made.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(made.descriptor_, 64), 0);
  return made;
}

std::optional<RawSocket> RawSocket::connected_if_possible(int port) {
  RawSocket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (connect(made.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
  return made;
}

RawSocket RawSocket::connected_to(int port) {
  std::optional<RawSocket> made = connected_if_possible(port);
  EXPECT_TRUE(made.has_value()) << "nobody listens on port " << port;
  return made ? *std::move(made) : RawSocket(-1);
}

int RawSocket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

bool RawSocket::send(const std::string& bytes) const {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

bool RawSocket::is_closed_within(Seconds most) const {
  timeval limit{.tv_sec = static_cast<time_t>(most.count()), .tv_usec = 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char buffer[4096];
  while (true) {
    const ssize_t now = recv(descriptor_, buffer, sizeof buffer, 0);
    if (now == 0 || (now < 0 && errno == ECONNRESET)) return true;
    if (now < 0) return false;
  }
}

void RawSocket::close(bool with_reset) {
  if (descriptor_ < 0) return;
  const linger at_once{.l_onoff = with_reset, .l_linger = 0};
  if (with_reset) setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(std::exchange(descriptor_, -1));
}

TcpProxy::TcpProxy(int target_port) : target_port_(target_port) {
  EXPECT_EQ(pipe(wake_), 0);
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  ends_ = true;
  EXPECT_EQ(write(wake_[1], "x", 1), 1);  // the thread may end without having read it
  thread_.join();
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void TcpProxy::give_orders() {
  const int before = taken_;
  EXPECT_EQ(write(wake_[1], "x", 1), 1);
  taken_.wait(before);
}

void TcpProxy::cut(bool to_target, bool to_caller) {
  is_cut_to_target_ = to_target;
  is_cut_to_caller_ = to_caller;
  give_orders();
}

void TcpProxy::reset() {
  resets_ = true;
  give_orders();
}

void TcpProxy::take_orders() {
  char byte;
  EXPECT_EQ(read(wake_[0], &byte, 1), 1);
  if (resets_.exchange(false)) {
    for (Pair& pair : pairs_) {
      pair.caller.close(true);
      pair.target.close(true);
    }
    pairs_.clear();
  }
  ++taken_;
  taken_.notify_all();
}

void TcpProxy::accept() {
  RawSocket caller(::accept(listener_.descriptor(), nullptr, nullptr));
  if (caller.descriptor() < 0) return;
  // A client of a server that has ended connects again and again.
  if (auto target = RawSocket::connected_if_possible(target_port_)) {
    pairs_.push_back({std::move(caller), *std::move(target)});
  }
}

bool TcpProxy::forward(const RawSocket& from, const RawSocket& to) {
  std::string buffer(1 << 16, '\0');
  const ssize_t count = recv(from.descriptor(), buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  buffer.resize(static_cast<size_t>(count));
  return to.send(buffer);
}

// A side that ends while the line is cut is closed, and the other one hears nothing of it.
void TcpProxy::forward_all(const std::vector<pollfd>& ready) {
  std::vector<Pair> left;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    Pair& pair = pairs_[i];
    const short caller = ready[2 + 2 * i].revents, target = ready[3 + 2 * i].revents;
    bool goes_on = true;
    if (caller & POLLIN)
      goes_on = forward(pair.caller, pair.target);
    else if (caller != 0)
      pair.caller.close();
    if (goes_on && (target & POLLIN))
      goes_on = forward(pair.target, pair.caller);
    else if (target != 0 && !(target & POLLIN))
      pair.target.close();
    if (goes_on) left.push_back(std::move(pair));
  }
  pairs_ = std::move(left);
}

void TcpProxy::run() {
  while (!ends_) {
    std::vector<pollfd> ready{{wake_[0], POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      ready.push_back({pair.caller.descriptor(), static_cast<short>(is_cut_to_target_ ? 0 : POLLIN), 0});
      ready.push_back({pair.target.descriptor(), static_cast<short>(is_cut_to_caller_ ? 0 : POLLIN), 0});
    }
    ::poll(ready.data(), ready.size(), -1);
    if (ready[0].revents != 0) {  // before any byte that came with them
      take_orders();
      continue;
    }
    forward_all(ready);
    if (ready[1].revents != 0) accept();
  }
}

}  // namespace longhaul

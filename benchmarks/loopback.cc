#include "benchmarks/loopback.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>

#include "benchmarks/bench.h"
#include "longhaul/base.h"

namespace longhaul::bench {
namespace {

// A socket on loopback, bound to a port that the system chooses.
class BoundSocket {
 public:
  BoundSocket() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    if (::bind(descriptor_, pointer(), size) != 0 || ::getsockname(descriptor_, pointer(), &size) != 0) {
      throw UnavailableError("no port on 127.0.0.1");
    }
  }
  ~BoundSocket() { ::close(descriptor_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int descriptor() const { return descriptor_; }
  sockaddr* pointer() { return reinterpret_cast<sockaddr*>(&address_); }
  std::string text() const { return fmt::format("127.0.0.1:{}", ntohs(address_.sin_port)); }

 private:
  const int descriptor_;
  sockaddr_in address_{};
};

// A TCP connection of this process with itself.
class Connection {
 public:
  Connection() {
    BoundSocket listening;
    ::listen(listening.descriptor(), 1);
    near_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = ::connect(near_, listening.pointer(), sizeof(sockaddr_in)) == 0;
    far_ = connected ? ::accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (far_ < 0) {
      ::close(near_);
      throw UnavailableError("no connection on 127.0.0.1");
    }
    const int on = 1;
    for (const int end : {near_, far_}) ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Connection() {
    ::close(near_);
    ::close(far_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int near_end() const { return near_; }
  int far_end() const { return far_; }

 private:
  int near_ = -1, far_ = -1;
};

// False: the connection was lost.
bool send_all(int descriptor, const std::vector<char>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::send(descriptor, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

// False: the other end has been closed.
bool receive_all(int descriptor, std::vector<char>& bytes) {
  return ::recv(descriptor, bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::vector<std::string> free_addresses_for(int tasks) {
  std::vector<std::unique_ptr<BoundSocket>> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < tasks; ++i) {
    sockets.push_back(std::make_unique<BoundSocket>());
    addresses.push_back(sockets.back()->text());
  }
  return addresses;
}

double tcp_seconds(size_t bytes) {
  const std::vector<char> sent(bytes, 'x');
  std::vector<char> received(1 << 20);
  size_t come = 0;
  const double seconds = time_seconds([&] {
    const Connection connection;
    const std::jthread sender([&] {
      send_all(connection.near_end(), sent);
      ::shutdown(connection.near_end(), SHUT_WR);
    });
    for (ssize_t count = 0; (count = ::recv(connection.far_end(), received.data(), received.size(), 0)) > 0;) {
      come += static_cast<size_t>(count);
    }
  });
  if (come != bytes) throw UnavailableError("a connection on 127.0.0.1 was lost");
  return seconds;
}

double tcp_round_trip_seconds(size_t bytes, int times) {
  const Connection connection;
  const std::jthread echo([&] {
    std::vector<char> there(bytes);
    while (receive_all(connection.far_end(), there) && send_all(connection.far_end(), there)) continue;
  });
  std::vector<char> message(bytes, 'x');
  bool connected = true;
  const double seconds = time_seconds([&] {
    for (int i = 0; i < times && connected; ++i) {
      connected = send_all(connection.near_end(), message) && receive_all(connection.near_end(), message);
    }
  });
  ::shutdown(connection.near_end(), SHUT_RDWR);  // ends the echo
  if (!connected) throw UnavailableError("a connection on 127.0.0.1 was lost");
  return seconds / times;
}

}  // namespace longhaul::bench

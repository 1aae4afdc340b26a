#include "longhaul/status/http_client_fixture.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace longhaul {

RawClient::RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ADD_FAILURE() << "connect to port " << port << ": " << strerror(errno);
  }
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

RawClient::RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

bool RawClient::send(const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;  // /stacks interrupts all threads, and a time limit makes that an end
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

std::string RawClient::receive_all() {
  std::string all;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t count = ::recv(fd_, part.data(), part.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      ADD_FAILURE() << "the server has not closed the connection within 20 s";
    }
    if (count <= 0) return all;
    all.append(part.data(), static_cast<size_t>(count));
  }
}

std::string fetch(int port, const std::string& method, const std::string& path, const std::string& headers) {
  RawClient client(port);
  client.send(fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n", method, path, port, headers));
  return client.receive_all();
}

std::string body_of(const std::string& reply) {
  const size_t end = reply.find("\r\n\r\n");
  return end == reply.npos ? "" : reply.substr(end + 4);
}

int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::atoi(reply.c_str() + 9) : 0;
}

}  // namespace longhaul

#include "longhaul/status/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "longhaul/status/http_protocol.h"

namespace longhaul {
namespace {

bool is_to_be_repeated(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Behind the empty line that ends the head; npos: it has not come.
size_t end_of_head(const std::string& text) {
  const size_t end = text.find("\r\n\r\n");
  const size_t bare = text.find("\n\n");
  if (end == text.npos) return bare == text.npos ? bare : bare + 2;
  return std::min(end + 4, bare == text.npos ? text.npos : bare + 2);
}

// The first letter of each method is one of these. TLS begins otherwise.
bool may_be_http(const std::string& text) {
  return text.empty() || (text[0] >= 'A' && text[0] <= 'Z');
}

}  // namespace

HttpConnection::HttpConnection(OwnedSocket socket, int64_t id, const HttpLimits& limits, Seconds now)
    : socket_(std::move(socket)), id_(id), limits_(limits), deadline_(now + limits.head) {}

short HttpConnection::events() const {
  switch (state_) {
    case State::kReading:
    case State::kDraining: return POLLIN;
    case State::kWriting: return POLLOUT;
    default: return 0;
  }
}

void HttpConnection::enter(State state, Seconds deadline) {
  state_ = state;
  deadline_ = deadline;
}

void HttpConnection::work(Seconds now) {
  if (state_ == State::kReading) read(now);
  if (state_ == State::kWriting) write(now);
  if (state_ == State::kDraining) drain();
}

void HttpConnection::read(Seconds now) {
  std::array<char, 4096> part;
  while (state_ == State::kReading) {
    const size_t room = std::min(part.size(), limits_.most_head_bytes - head_.size());
    const ssize_t count = ::recv(fd(), part.data(), room, 0);
    if (count < 0 && is_to_be_repeated(errno)) return;
    if (count <= 0) return enter(State::kOver, now);
    head_.append(part.data(), static_cast<size_t>(count));
    if (!may_be_http(head_)) return send(bare_reply(400, "Bad Request", "This port speaks HTTP without TLS.\n"), now);
    const size_t end = end_of_head(head_);
    if (end != head_.npos) {
      head_.resize(end);
      has_request_ = true;
      return enter(State::kAnswering, now + limits_.answer);
    }
    if (head_.size() >= limits_.most_head_bytes) {
      return send(bare_reply(431, "Request Header Fields Too Large", "The request is too long.\n"), now);
    }
  }
}

std::optional<std::string> HttpConnection::take_request() {
  if (!std::exchange(has_request_, false)) return std::nullopt;
  return std::exchange(head_, {});
}

void HttpConnection::send(std::string reply, Seconds now) {
  reply_ = std::move(reply);
  written_ = 0;
  last_moment_ = now + Seconds{static_cast<double>(reply_.size()) / limits_.least_speed};
  enter(State::kWriting, now + limits_.write);
  write(now);
}

void HttpConnection::write(Seconds now) {
  while (written_ < reply_.size()) {
    const ssize_t count = ::send(fd(), reply_.data() + written_, reply_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && is_to_be_repeated(errno)) return;
    if (count <= 0) return enter(State::kOver, now);
    written_ += static_cast<size_t>(count);
    deadline_ = std::min(now, last_moment_) + limits_.write;
  }
  reply_ = {};
  ::shutdown(fd(), SHUT_WR);
  enter(State::kDraining, now + limits_.drain);
}

void HttpConnection::drain() {
  std::array<char, 4096> part;
  const ssize_t count = ::recv(fd(), part.data(), part.size(), 0);
  if (count < 0 && is_to_be_repeated(errno)) return;
  if (count <= 0) enter(State::kOver, deadline_);
}

void HttpConnection::expire(Seconds now) {
  if (now < deadline_) return;
  if (state_ == State::kReading && !head_.empty()) {
    return send(bare_reply(408, "Request Timeout", "The request has not come in time.\n"), now);
  }
  if (state_ == State::kAnswering) {
    return send(bare_reply(503, "Service Unavailable", "There was no answer in time.\n"), now);
  }
  enter(State::kOver, now);
}

}  // namespace longhaul

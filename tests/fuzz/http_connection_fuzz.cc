// The life of a connection: a byte for the limit of its head, then what happens, each a byte and what belongs to it:
// the client sends bytes (with their number, two bytes, before them), reads (kilobytes), ends what it sends, or goes;
// time passes (tenths of a second); the program replies (units of four kilobytes). Whatever it is, the request is what
// the client has sent up to the first empty line, within the limit, and given once; the client receives one reply, cut
// only if it does not read; no state comes again, and the connection is over in time.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/status/http_connection.h"
#include "tests/fuzz/input.h"

namespace longhaul {
namespace {

using State = HttpConnection::State;

constexpr Seconds kStart{1000}, kRounding{1e-6};

class Ends {
 public:
  Ends() {
    const AboveStdio above;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both_) != 0) std::abort();
  }
  OwnedSocket server() const { return OwnedSocket(both_[1]); }
  OwnedSocket client() const { return OwnedSocket(both_[0]); }

 private:
  int both_[2] = {-1, -1};
};

class Conversation {
 public:
  explicit Conversation(size_t most_head_bytes)
      : limits_{.most_head_bytes = most_head_bytes},
        client_(ends_.client()),
        connection_(ends_.server(), 7, limits_, kStart) {}

  void happen(fuzz::Input& in) {
    switch (in.byte() % 6) {
      case 0: send(in.counted_bytes()); break;
      case 1: receive(size_t{in.byte()} << 10); break;
      case 2:
        ::shutdown(client_.get(), SHUT_WR);
        has_ended_ = true;
        break;
      case 3: client_.reset(); break;
      case 4: pass(Seconds{in.byte() / 10.0}); break;
      case 5: reply(size_t{in.byte()} << 12); break;
    }
    work();
  }

  // All wait for all until nobody does any more.
  void end() {
    for (int i = 0; i < 4 && connection_.state() != State::kOver; ++i) {
      pass(Seconds{1e9});
      work();
    }
    if (connection_.state() != State::kOver) __builtin_trap();
    receive(std::string::npos);
    const bool is_whole = received_.empty() || received_.size() == size_of_reply();
    if (client_.is_open() && !was_cut_ && !is_whole) __builtin_trap();
  }

 private:
  void send(const std::string& bytes) {
    if (!client_.is_open() || has_ended_) return;
    const ssize_t count = ::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) sent_ += bytes.substr(0, static_cast<size_t>(count));
  }
  void receive(size_t most) {
    std::string part(4096, '\0');
    while (client_.is_open() && most > 0) {
      const ssize_t count = ::recv(client_.get(), part.data(), std::min(part.size(), most), 0);
      if (count <= 0) break;
      received_ += part.substr(0, static_cast<size_t>(count));
      most -= static_cast<size_t>(count);
    }
    check_received();
  }
  void pass(Seconds time) { now_ = std::min(now_ + time, std::max(now_, connection_.deadline())); }
  void reply(size_t bytes) {
    if (connection_.state() != State::kAnswering) return;
    reply_ = "HTTP/1.1 200 OK\r\n\r\n" + std::string(bytes, 'x');
    connection_.send(reply_, now_);
  }

  void work() {
    step([&] { connection_.work(now_); });
    if (auto request = connection_.take_request()) take(*request);
    if (connection_.take_request()) __builtin_trap();
    if (connection_.state() == State::kReading && client_.is_open() && must_have_ended()) __builtin_trap();
    step([&] { connection_.expire(now_); });
    if (connection_.state() == State::kOver) return;
    if (connection_.deadline() <= now_ || connection_.deadline() > latest_end()) __builtin_trap();
  }
  template <typename Do>
  void step(Do&& act) {
    const State before = connection_.state();
    act();
    const State after = connection_.state();
    if (after < before) __builtin_trap();
    if (before == State::kWriting && after == State::kOver) was_cut_ = true;
    if (before == State::kReading && after == State::kOver) was_cut_ = true;
    const short events = connection_.events();
    if ((events != 0) != (after != State::kAnswering && after != State::kOver)) __builtin_trap();
  }

  // The bytes of the head, by the simplest reading of what was sent; npos: it has no end.
  size_t end_of_head() const {
    for (size_t size = 2; size <= sent_.size(); ++size) {
      const std::string_view head = std::string_view(sent_).substr(0, size);
      if (head.ends_with("\r\n\r\n") || head.ends_with("\n\n")) return size;
    }
    return std::string::npos;
  }
  bool begins_with_capital() const { return !sent_.empty() && sent_[0] >= 'A' && sent_[0] <= 'Z'; }
  bool must_have_ended() const {
    return has_ended_ || sent_.size() >= limits_.most_head_bytes || (!sent_.empty() && !begins_with_capital()) ||
           end_of_head() != std::string::npos;
  }
  void take(const std::string& request) {
    if (std::exchange(is_taken_, true) || !begins_with_capital()) __builtin_trap();
    if (request.size() != end_of_head() || request.size() > limits_.most_head_bytes) __builtin_trap();
    if (!sent_.starts_with(request)) __builtin_trap();
  }

  // One that the connection makes itself has its length in it.
  size_t size_of_reply() const {
    if (!reply_.empty()) return reply_.size();
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t length = received_.find(kLength), head = received_.find("\r\n\r\n");
    if (length == std::string::npos || head == std::string::npos) __builtin_trap();
    return head + 4 + static_cast<size_t>(std::atoi(received_.c_str() + length + kLength.size()));
  }
  void check_received() const {
    if (!reply_.empty() && !reply_.starts_with(received_)) __builtin_trap();
    if (!std::string_view("HTTP/1.1 ").starts_with(received_.substr(0, 9))) __builtin_trap();
    if (reply_.empty() && received_.size() > 1000) __builtin_trap();
  }
  Seconds latest_end() const {
    const Seconds all{static_cast<double>(std::max<size_t>(reply_.size(), 1000)) / limits_.least_speed};
    return kStart + limits_.head + limits_.answer + all + limits_.write + limits_.drain + kRounding;
  }

  const HttpLimits limits_;
  const Ends ends_;
  OwnedSocket client_;
  HttpConnection connection_;
  Seconds now_ = kStart;
  std::string sent_, received_, reply_;
  bool has_ended_ = false, is_taken_ = false;
  bool was_cut_ = false;  // the connection, before all of a reply was written
};

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  longhaul::fuzz::Input in(data, size);
  longhaul::Conversation conversation(size_t{in.byte()} * 32 + 1);
  while (!in.empty()) conversation.happen(in);
  conversation.end();
  return 0;
}

#pragma once

#include <poll.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// A port of loopback, as a test's own client and server use it: without gRPC. The descriptor closes itself.
class RawSocket {
 public:
  static RawSocket listening();             // on a port that the system chooses
  static RawSocket connected_to(int port);  // fails the test if nobody listens
  static std::optional<RawSocket> connected_if_possible(int port);
  explicit RawSocket(int descriptor = -1) : descriptor_(descriptor) {}
  RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~RawSocket() { close(); }

  int descriptor() const { return descriptor_; }
  int port() const;
  bool send(const std::string& bytes) const;  // all of them
  bool is_closed_within(Seconds most) const;  // by the other side; drops what it says
  void close(bool with_reset = false);

 private:
  int descriptor_;
};

// Stands between a caller and a task's port, and plays what happens to a line: it is cut in one direction or both,
// without a word to either side, or the peer's process dies.
class TcpProxy {
 public:
  explicit TcpProxy(int target_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return listener_.port(); }
  void cut(bool to_target, bool to_caller);  // nothing passes in these directions from now on
  void mend() { cut(false, false); }
  void reset();  // ends the connections, as the system does for a process that dies

 private:
  struct Pair {
    RawSocket caller, target;
  };
  void give_orders();  // and waits until they are taken
  void run();
  void take_orders();
  void accept();
  // Moves what has come from one to the other; false: that side has ended.
  static bool forward(const RawSocket& from, const RawSocket& to);
  void forward_all(const std::vector<pollfd>& ready);

  const int target_port_;
  const RawSocket listener_ = RawSocket::listening();
  int wake_[2];
  std::atomic<bool> ends_ = false, resets_ = false, is_cut_to_target_ = false, is_cut_to_caller_ = false;
  std::atomic<int> taken_ = 0;
  std::vector<Pair> pairs_;  // of the thread
  std::thread thread_;
};

}  // namespace longhaul

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/cluster/security/renewal_watch.h"
#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/cluster/transport/transport.h"

namespace grpc {
class ChannelCredentials;
}

namespace longhaul {

// What the path of each method between tasks begins with, as in "/longhaul.Task/RunPart".
inline constexpr char kTaskPath[] = "/longhaul.Task/";

// Counts the calls that gRPC has not finished. Any thread may call.
class CallsInGrpc {
 public:
  void add() EXCLUDES(mutex_);
  void remove() EXCLUDES(mutex_);
  bool wait_until_none(Seconds most) EXCLUDES(mutex_);  // false: some are left

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t count_ GUARDED_BY(mutex_) = 0;
};

// The connection to one peer: made when the first call needs it, and again after it broke, with pauses of 0.1 to 1 s.
// Calls that are under way outlive it. Any thread may call.
class PeerLine {
 public:
  struct Options {
    std::string address{};
    std::shared_ptr<grpc::ChannelCredentials> credentials{};
    TransportLimits limits{};
    FrameLimits frames{};
    Clock* clock = &Clock::real();
    std::shared_ptr<CallsInGrpc> calls{};
    std::shared_ptr<RenewalWatch> files{};  // of TLS: asked for problems if there is no connection; null: none
  };
  explicit PeerLine(Options options);
  ~PeerLine();

  const std::string& address() const;

  struct Sent {
    std::string path;                    // "/longhaul.Task/RunPart"
    std::optional<Seconds> time_left{};  // none: no deadline
    Slices frame{};                      // the encoded call (write_frame)
    std::string token{};                 // empty: none
  };
  // Sends the frame. Later the call ends: with the reply, an error, or because the connection broke (OutgoingCall).
  void start(std::shared_ptr<OutgoingCall> call, const Sent& sent);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace longhaul

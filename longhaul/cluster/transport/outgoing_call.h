#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/cluster/transport/message.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// A call to another task that is under way. It ends once: with the reply, an error, or because the caller gave it up.
// Any thread may call.
class OutgoingCall {
 public:
  using Done = std::function<void(CallReply)>;
  struct Peer {
    std::string task;
    std::string address;  // for messages; may be empty
    std::string method;
    uint64_t incarnation = 0;  // the one that was asked for; 0: any
    Seconds began{0};
    std::optional<Seconds> connect{};  // as in CallRequest
  };

  // `done` is called once, without a lock. What it throws is logged.
  OutgoingCall(Peer peer, Done done) : peer_(std::move(peer)), done_(std::move(done)) {}

  const Peer& peer() const { return peer_; }
  bool has_ended() const EXCLUDES(mutex_);

  // The caller no longer wants the reply: the call ends with CancelledError, and the peer is told.
  void cancel(const std::string& why) EXCLUDES(mutex_);

  // For transports. Each returns false, without effect, if the call has ended.
  bool end(CallReply reply) EXCLUDES(mutex_);                                    // as it is
  bool end(const proto::ReplyHeader& header, Message message) EXCLUDES(mutex_);  // with what the peer answered
  bool give_up(std::exception_ptr error) EXCLUDES(mutex_);                       // and the peer is told
  bool give_up_late(Seconds now) EXCLUDES(mutex_);                               // the same with DeadlineExceededError
  // The line is gone, or was never there: UnavailableError that says how long the peer has not answered, with the
  // reason if the transport knows one.
  bool break_off(Seconds now, const std::string& why = {}) EXCLUDES(mutex_);
  // The connection that had the call has ended by itself, whenever the call began: UnavailableError that says so.
  bool connection_broke(const std::string& why) EXCLUDES(mutex_);
  // How the peer is told: called at most once, by give_up(). Set it before the request is sent.
  void on_give_up(std::function<void()> tell) EXCLUDES(mutex_);

 private:
  bool finish(CallReply reply, std::function<void()>& tell) EXCLUDES(mutex_);  // `tell`: what on_give_up() has set
  bool break_off_with(const std::string& text) EXCLUDES(mutex_);
  std::string unanswered(Seconds now) const;

  const Peer peer_;
  mutable Mutex mutex_;
  Done done_ GUARDED_BY(mutex_);
  bool has_ended_ GUARDED_BY(mutex_) = false;
  std::function<void()> tell_ GUARDED_BY(mutex_);
};

}  // namespace longhaul

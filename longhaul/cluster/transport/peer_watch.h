#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "longhaul/cluster/transport/transport.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// Watches another process, or its session, by one parked call. Nothing is sent while all is well. The session begins
// there with it, and ends with it.
class PeerWatch {
 public:
  // `isolated`: the session has containers of its own. Calls `lost` once, on a thread of the transport, without a lock:
  // with AbortedError if another process answers there or the session was ended, else with UnavailableError. It may
  // still be under way when the watch is destroyed, so it must own what it touches.
  PeerWatch(Transport& transport, const std::string& task, uint64_t incarnation, const std::string& session,
            std::function<void(std::exception_ptr)> lost, bool isolated = false);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::shared_ptr<OutgoingCall> call_;
};

// The watched side: keeps the watchers' calls. Any thread may call.
class Watched {
 public:
  using Gone = std::function<void(const IncomingCall::Caller& caller, const std::string& session)>;
  using Come = std::function<void(const IncomingCall::Caller& caller, const proto::WatchRequest& request)>;

  // Serves Watch. `come`, if there is one, is notified of each watcher, and refuses it by throwing; `gone`, of each
  // that has gone. Both on a thread of the transport, without a lock; they must own what they touch.
  explicit Watched(Transport& transport, Gone gone = {}, Come come = {});

  // Tells the watchers of that session, or of the process if it is empty, that it has ended.
  void end(const std::string& session, const std::string& why);

  size_t watchers() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace longhaul

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/wire_call.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/session.h"

namespace longhaul {

struct MasterState;

// What a server gives its MasterService. The functions may wait, within limits of their own; they run on several
// threads.
struct MasterServiceOptions {
  std::function<std::unique_ptr<Session>(Graph&, const SessionOptions&)> new_session{};
  std::function<std::vector<DeviceAttributes>()> list_devices{};  // of the whole cluster
  std::function<std::vector<DeviceAttributes>()> own_devices{};   // of this task, which are local to the master
  std::function<void(const std::vector<std::string>& containers)> reset{};
  proto::ConfigProto default_config{};  // lies under the config of each session
  Clock* clock = &Clock::real();
  size_t most_threads = 64;  // calls under way; four more may close and reset sessions
  size_t most_queued = 256;  // calls that wait for their turn
  size_t most_sessions = 1000;
  // A session that no client has used for so long is closed. 0, as on TensorFlow's servers: none is, before its client
  // closes it or the server stops.
  Seconds session_gc{0};
  // For tests whose clock must know that a call is under way. May be empty.
  std::function<std::function<void()>(std::function<void()>)> around{};
};

// TensorFlow's MasterService, and the GetStatus of its WorkerService, for clients with TensorFlow's own messages: a
// client makes a session, whose graph comes as GraphDefs, and runs it. What the original calls a master is here a
// session in the server's process (docs/formats/master_service.md). Any thread may call.
//
// A call that comes twice because an answer was lost is made once, if it has a request_id. The error of a run travels
// in the reply, whole, if the client says so; others as WireCall::fail() has them.
class MasterService {
 public:
  static constexpr char kPrefix[] = "/tensorflow.MasterService/";
  static constexpr char kWorkerPrefix[] = "/tensorflow.WorkerService/";

  explicit MasterService(MasterServiceOptions options);
  ~MasterService();  // does not wait: stop() comes first
  MasterService(const MasterService&) = delete;
  MasterService& operator=(const MasterService&) = delete;

  // A WireHandler for both prefixes. Answers on a thread named lh-master-N; does not wait.
  void handle(std::shared_ptr<WireCall> call);

  // Refuses later calls with UnavailableError, closes all sessions, and waits until the calls under way have ended.
  // False: some have not within that time, and are left behind. May be called twice.
  bool stop(const std::string& why, Seconds timeout);

  size_t sessions() const;

 private:
  const std::shared_ptr<MasterState> state_;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/proto/graph.pb.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A run in a client's words, without the values that are fed.
struct WireRun {
  std::vector<std::string> feeds, fetches;  // tensors: "v:0", or "v", which means the same
  std::vector<std::string> targets;         // operations
  RunOptions options{};
};

// What a client of MasterService has made: a graph, the session that runs it, callables. Its methods are the client's
// calls, with their errors in TensorFlow's words. Any thread.
class WireSession {
 public:
  using NewSession = std::function<std::unique_ptr<Session>(Graph&, const SessionOptions&)>;

  // The errors of start_graph() and of `make`.
  WireSession(const proto::GraphDef& nodes, const SessionOptions& options, const NewSession& make);
  WireSession(const WireSession&) = delete;
  WireSession& operator=(const WireSession&) = delete;

  Seconds operation_timeout() const { return operation_timeout_; }

  // Adds nodes, all or none, and returns the graph's new version. AbortedError: its version is not `current_version`.
  int64_t extend(const proto::GraphDef& nodes, int64_t current_version) EXCLUDES(extending_);

  // A value for each fetch. `metadata` receives what the run's options ask for.
  std::vector<Tensor> run(const WireRun& run, const std::vector<Tensor>& feed_values, proto::RunMetadata* metadata)
      EXCLUDES(mutex_);
  std::vector<DeviceAttributes> list_devices() EXCLUDES(mutex_);

  // Returns a number, from 0 upwards. NotFoundError, InvalidArgumentError: a name does not fit the graph.
  int64_t make_callable(WireRun run) EXCLUDES(mutex_);
  // InvalidArgumentError: there never was one of that number, or it was released.
  std::shared_ptr<const WireRun> callable(int64_t handle) EXCLUDES(mutex_);
  void release_callable(int64_t handle) EXCLUDES(mutex_);  // no error if there is none

  // Ends the runs under way, with CancelledError, and waits for them within half of the time until the deadline; calls
  // that come later get FailedPreconditionError "Session is closed."
  void close(const Deadline& deadline) EXCLUDES(mutex_);

 private:
  void check_open() EXCLUDES(mutex_);

  const Seconds operation_timeout_;
  Graph graph_;
  std::unique_ptr<Session> session_;  // of that graph
  Mutex extending_;                   // held by one extension at a time
  int64_t version_ GUARDED_BY(extending_) = 0;
  Mutex mutex_;
  bool is_closed_ GUARDED_BY(mutex_) = false;
  int64_t next_callable_ GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::shared_ptr<const WireRun>> callables_ GUARDED_BY(mutex_);
};

}  // namespace longhaul

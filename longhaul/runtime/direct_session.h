#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/runtime/plan/plan.h"
#include "longhaul/runtime/state/resources.h"
#include "longhaul/runtime/state/watched_step.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/session/step_fetch.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// A session in this process: plans are compiled once for each set of fetches and feeds. Variables live here, or in a
// ServerState if several sessions share them.
class DirectSession : public Session, StepFetching, StepWatching, SnapshotKeeping {
 public:
  // The graph must outlive the session. InvalidArgumentError: options that this machine does not support.
  DirectSession(Graph& graph, const SessionOptions& options);
  // One of several sessions that share a server's variables and resources: close() ends its own runs and leaves these
  // alone. So it waits for a step that is waiting for snapshot memory, whose limit is the server's.
  DirectSession(Graph& graph, const SessionOptions& options, std::shared_ptr<ServerState> server);
  ~DirectSession() override;

  SessionCapabilities capabilities() override;  // all
  void close() override { close_before(nullptr); }
  void close_before(const Deadline* deadline) override;

  // For tests: counters of the variables.
  SessionResources& resources() { return *state_->resources; }

 protected:
  std::vector<Tensor> do_run(const Request& request, std::span<const Tensor* const> feed_values,
                             proto::RunMetadata* metadata) override;
  std::shared_ptr<CompiledRun> do_make_callable(const Request& request) override;

 private:
  class DirectRun;

  void request_step_fetch(StepFetch request) override;
  void withdraw_step_fetch() override;
  std::shared_ptr<const void> watch_steps(StepWatch watch) override;
  bool sees_all_steps() const override { return state_->owns_server; }
  std::shared_ptr<Snapshots> snapshots() override;

  // The state that runs under way need; callables keep it alive after the session's end.
  struct State {
    std::unique_ptr<SessionResources> resources;
    bool owns_server = false;  // and clears it at the end
    Seconds default_timeout{0};
    std::atomic<bool> closed{false};
    // Runs under way, counted per callable: threads that run different ones do not share a cache line.
    struct alignas(64) RunCount {
      std::atomic<int> running{0};
    };
    std::array<RunCount, 16> run_counts;
    std::atomic<size_t> next_count{0};
    Mutex idle_mutex;
    CondVar idle;  // a run of a closed session ended

    std::atomic<bool> step_fetch_due{false};
    std::mutex mutex;
    std::shared_ptr<StepFetch> step_fetch;  // guarded by mutex
    std::atomic<bool> watched{false};
    std::vector<std::weak_ptr<WatchedStep>> watched_steps;  // guarded by mutex
  };
  // Counts a run; throws if the session is closed.
  class Running;

  bool wait_for_runs(const Deadline* deadline);  // false: one takes too long

  std::shared_ptr<State> state_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<DirectRun>> compiled_;  // guarded by mutex_
};

// The factory that longhaul.h installs: sessions of this process for the target "".
std::unique_ptr<Session> new_direct_session(const std::string& target, Graph& graph, const SessionOptions& options);

}  // namespace longhaul

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
#include "longhaul/runtime/state/session_state.h"
#include "longhaul/runtime/state/watched_step.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/session/program_steps.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/session/step_fetches.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// A session in this process: plans are compiled once for each set of fetches and feeds. Variables live in a task: one
// of its own, or one that sessions share.
class DirectSession : public Session, StepWatching, SnapshotKeeping, ProgramSteps {
 public:
  // The graph must outlive the session. InvalidArgumentError: options that this machine does not support.
  DirectSession(Graph& graph, const SessionOptions& options);
  // One of several sessions that share a task's variables and resources (unless the options isolate its state), its
  // devices and its snapshot memory: close() ends its own runs and leaves these alone. So it waits for a step that is
  // waiting for snapshot memory, whose limit is the task's.
  DirectSession(Graph& graph, const SessionOptions& options, std::shared_ptr<TaskResources> task);
  ~DirectSession() override;

  SessionCapabilities capabilities() override;  // all but those of sessions on servers
  void close() override { close_before(nullptr); }
  void close_before(const Deadline* deadline) override;
  std::vector<DeviceAttributes> list_devices() override;

  // For tests: counters of the variables.
  SessionState& resources() { return *state_->session; }

 protected:
  std::vector<Tensor> do_run(const Request& request, std::span<const Tensor* const> feed_values,
                             proto::RunMetadata* metadata) override;
  std::shared_ptr<CompiledRun> do_make_callable(const Request& request) override;

 private:
  class DirectRun;

  std::shared_ptr<const void> watch_steps(StepWatch watch) override;
  bool sees_all_steps() const override { return state_->owns_variables(); }
  bool is_step_under_way() const override;
  uint64_t steps_ended() const override;
  std::shared_ptr<Snapshots> snapshots() override;
  void begin_step() override;
  void abandon_step() override;

  // The state that runs under way need; callables keep it alive after the session's end.
  struct State {
    std::shared_ptr<SessionState> session;
    bool owns_task = false;
    bool owns_variables() const { return owns_task || session->isolated(); }  // and clears them at the end
    Seconds default_timeout{0};
    std::atomic<bool> ended{false};   // no run begins: it was closed, or a reset of the task has aborted it
    std::atomic<bool> closed{false};  // close() was called
    std::unique_ptr<Cancellation::Watch> end;
    // Runs under way, counted per callable: threads that run different ones do not share a cache line.
    struct alignas(64) RunCount {
      std::atomic<int> running{0};
      std::atomic<uint64_t> ended{0};
    };
    std::array<RunCount, 16> run_counts;  // every second one, from 1 on, is of runs that write variables
    std::atomic<size_t> next_count{0};
    size_t new_count(bool writes) { return next_count.fetch_add(2) % run_counts.size() + (writes ? 1 : 0); }
    Mutex idle_mutex;
    CondVar idle;  // a run of a session that has ended did, too

    StepFetches step_fetches;
    std::mutex mutex;
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

// What longhaul.h installs: sessions of this process for the target "", and Session::reset() of all of these.
std::unique_ptr<Session> new_direct_session(const std::string& target, Graph& graph, const SessionOptions& options);
void reset_direct_sessions(const std::string& target, const std::vector<std::string>& containers);

}  // namespace longhaul

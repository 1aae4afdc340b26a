#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/master/cluster_run.h"
#include "longhaul/cluster/master/open_runs.h"
#include "longhaul/cluster/master/value_stream.h"
#include "longhaul/session/model_reset.h"
#include "longhaul/session/model_watch.h"
#include "longhaul/session/newest_step.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/session/step_fates.h"
#include "longhaul/session/step_fetches.h"
#include "longhaul/session/step_reading.h"
#include "longhaul/session/step_watches.h"
#include "longhaul/session/stop_notice.h"
#include "longhaul/session/task_snapshots.h"
#include "longhaul/session/training_ending.h"
#include "longhaul/session/training_joining.h"

namespace longhaul {

class TakenSnapshot;
class TaskChanges;

// What a session of several tasks is made of.
struct ClusterSessionOptions {
  std::vector<std::string> tasks{};  // of the cluster: "/job:ps/replica:0/task:0"
  // Where what nothing else decides is placed; empty: the transport's own task, which need not be among the tasks
  // otherwise.
  std::string home{};
  // The addresses of tasks that have other names for themselves, or that other tasks do not know: all call these by
  // their addresses.
  std::map<std::string, std::string> called{};
  std::shared_ptr<const void> keeps{};  // kept as long as the session: what the transport needs to live
  // Filters, placement, isolation and the time limit of runs; the rest is the tasks' matter.
  SessionOptions session{};
  Seconds max_wait{600};     // for a task that a run names and that is not there yet, unless session.task_wait says it
  StreamLimits streaming{};  // of a saver's values that come to this process
};

// A session whose graph runs on several tasks. The master is in this process: one of the tasks, or a client, which none
// of them ever calls. Nobody is contacted before a run names him. Each step takes place on all its tasks or on none.
// Any thread.
//
// run() throws, besides what Session says:
//   - AbortedError: a task of the session died, was restarted or cut off, or the session was ended there. All later
//     runs throw it at once; a new session continues with the variables that live
//   - UnavailableError: a task does not answer, though the session may continue
//   - InvalidArgumentError: an operation cannot be placed, or a step would need a value that another task computes
//     after writing
// Errors of tasks begin with "From TASK:". Those of a step that was to write say whether it was committed, where a
// repetition would need to know: in their text, and as Error::failed_step().
class ClusterSession : public Session,
                       StepWatching,
                       SnapshotKeeping,
                       TaskSnapshots,
                       ModelWatching,
                       ModelReset,
                       StepFates,
                       StepReading,
                       StopNoticing,
                       TrainingEnding,
                       TrainingJoining {
 public:
  // The transport is the master's. It (unless the options keep it) and the graph must outlive the session.
  // InvalidArgumentError: a filter is malformed, or the home is not among the tasks.
  ClusterSession(Graph& graph, Transport& transport, const ClusterSessionOptions& options);
  ~ClusterSession() override;

  const std::string& handle() const { return state_->tasks->session(); }  // 16 hex digits, its own

  SessionCapabilities capabilities() override;
  // Ends the runs under way and the session on its tasks, all in 10 s. Tasks that no run has named are not contacted,
  // nor are those of a session that is lost. Errors are logged.
  void close() override { close_before(nullptr); }
  void close_before(const Deadline* deadline) override;
  // Asks all tasks that the filters leave.
  std::vector<DeviceAttributes> list_devices() override;

  // A snapshot of these tensors whose values stay on their tasks. `global_step`: the index of the one whose value is
  // wanted here.
  std::unique_ptr<TakenSnapshot> take_on_tasks(const std::vector<Fetch>& fetches,
                                               std::optional<size_t> global_step = {});

  // For waits until the model is ready: what changes on the tasks that runs have named so far.
  std::unique_ptr<TaskChanges> changes();

 protected:
  std::vector<Tensor> do_run(const Request& request, std::span<const Tensor* const> feed_values,
                             proto::RunMetadata* metadata) override;
  std::shared_ptr<CompiledRun> do_make_callable(const Request& request) override;

 private:
  class ClusterCallable;

  // Callables keep it alive after the session's end.
  struct State {
    State(Transport& the_transport, const ClusterSessionOptions& options);
    std::vector<Tensor> run(const Graph& graph, const Request& request, std::span<const Tensor* const> feed_values,
                            proto::RunMetadata* metadata);
    std::vector<Tensor> run_within(const Graph& graph, const Request& request,
                                   std::span<const Tensor* const> feed_values, proto::RunMetadata* metadata,
                                   const WaitLimits& limits);
    // `trace` may be null.
    std::vector<Tensor> run_step(const std::shared_ptr<const ClusterRun>& run,
                                 std::span<const Tensor* const> feed_values, const WaitLimits& limits,
                                 proto::StepStats* trace);
    std::shared_ptr<const ClusterRun> prepare(const Graph& graph, const Request& request, const WaitLimits& limits);
    // The step, and what is due with it.
    std::vector<Tensor> run_with(const StepFetch& due, const Graph& graph, const Request& request,
                                 std::span<const Tensor* const> feed_values, const WaitLimits& limits,
                                 proto::StepStats* trace);
    // The step of watches, by a run.
    int64_t read_step(const Output& step, const WaitLimits& limits);
    // `timeout` 0: the session's.
    WaitLimits limits(Seconds timeout, Cancellation& cancellation);
    WaitLimits limits() { return limits(Seconds{0}, tasks->cancellation()); }
    void keep_until_close(std::shared_ptr<const void> notices) EXCLUDES(notices_mutex);
    void drop_notices() EXCLUDES(notices_mutex);

    Transport& transport;
    const Seconds operation_timeout;
    const bool is_isolated;
    const StreamLimits streaming;
    const std::shared_ptr<SessionTasks> tasks;
    ClusterRuns runs;
    StepFetches fetches;
    StepWatches watches;
    NewestStep newest_step;
    StepCount steps;
    OpenRuns open_runs;
    Mutex notices_mutex;
    std::vector<std::shared_ptr<const void>> notices GUARDED_BY(notices_mutex);
  };

  std::shared_ptr<const void> watch_steps(StepWatch watch) override;
  bool sees_all_steps() const override { return state_->is_isolated; }
  bool is_step_under_way() const override { return state_->steps.is_under_way(); }
  uint64_t steps_ended() const override { return state_->steps.ended(); }
  std::shared_ptr<Snapshots> snapshots() override;
  std::vector<std::string> tasks_of(const std::vector<Fetch>& fetches) override;
  std::unique_ptr<TaskSnapshot> take_there(const std::vector<Fetch>& fetches,
                                           std::optional<size_t> global_step) override;
  std::vector<SeenFile> look(const std::vector<std::string>& tasks, const std::string& path, LookFor purpose) override;
  uint64_t most_in_flight() const override { return state_->streaming.in_flight; }
  std::unique_ptr<ModelWatch> watch_model(std::function<void()> changed) override;
  void reset_model(Seconds at_most) override;
  StepFate find_fate(int64_t step, Seconds at_most) override;
  std::optional<ReadStep> newest_step() const override;
  std::shared_ptr<const void> notice_stops(std::function<void(const StopNotice&)> noticed) override;
  void end_training(Seconds at_most) override;
  void join_training(int64_t step) override { state_->runs.join_training(step); }

  const std::shared_ptr<State> state_;
};

// Empties containers of the tasks; without names, all of them. All sessions there end with AbortedError. Waits until
// each task has answered, within the limits, but at most 2 s for a connection to each. UnavailableError,
// DeadlineExceededError: some have not, and are named; the others have been reset.
void reset_tasks(Transport& transport, const std::vector<std::string>& tasks,
                 const std::vector<std::string>& containers, const WaitLimits& limits);

}  // namespace longhaul

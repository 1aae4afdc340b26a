#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/graph.h"
#include "longhaul/session/capabilities.h"
#include "longhaul/session/device_attributes.h"

namespace longhaul {

class Cancellation;
class Deadline;

namespace proto {
class RunMetadata;
}

// Something that run() can fetch or feed: a tensor ("w:0") or an operation ("train"), given as an object or by name.
class Fetch {
 public:
  Fetch(Operation op) : op_(op) {}
  Fetch(Output output) : op_(output.op()), index_(output.index()) {}
  Fetch(std::string name) : name_(std::move(name)) {}
  Fetch(const char* name) : name_(name) {}
  template <typename T>
    requires(std::is_convertible_v<const T&, Output> && !std::is_same_v<T, Output>)
  Fetch(const T& variable) : Fetch(Output(variable)) {}

  // The operation or output that this refers to. NotFoundError: the graph has no such name. InvalidArgumentError: it
  // belongs to another graph.
  struct Target {
    Operation op;
    int index = -1;  // -1: the operation itself
    bool is_operation() const { return index < 0; }
    Output output() const { return Output(op, index); }
  };
  Target resolve(const Graph& graph) const;

  // Whether both are given in the same form: the name "w:0" and the output of that name are not equal.
  bool operator==(const Fetch&) const = default;

 private:
  Operation op_;
  int index_ = -1;
  std::string name_;
};

// What a Fetch can be made of: Output, Operation, Variable, a name.
template <typename T>
concept Fetchable = std::is_convertible_v<const T&, Fetch> && !std::is_same_v<T, Fetch>;

using Feeds = std::vector<std::pair<Fetch, Tensor>>;

// The amount of tracing in a run, with the numbers of TensorFlow's RunOptions.TraceLevel. On a CPU, which has no
// timeline of its own, all levels except kNoTrace record the same.
enum class TraceLevel { kNoTrace = 0, kSoftwareTrace = 1, kHardwareTrace = 2, kFullTrace = 3 };

struct RunOptions {
  // The run fails with DeadlineExceededError once one of its operations has waited this long. 0: the session's
  // operation_timeout.
  Seconds timeout{0};

  // true: all variables are read as they are between two steps, so the fetched values are consistent. The run must not
  // write variables. FailedPreconditionError: an earlier step failed halfway, so the variables are inconsistent until
  // they are assigned again.
  bool snapshot = false;

  // What the run records in its RunMetadata: the times and results of each operation (step_stats), and the part of the
  // graph that the run needed, with full device names (partition_graphs).
  TraceLevel trace_level = TraceLevel::kNoTrace;
  bool output_partition_graphs = false;

  // For a caller that may lose its interest in the run, and must outlive it; null: none does. Once it is cancelled, the
  // run ends soon, with its CancelledError: waits are woken, and a step whose commit has not begun is aborted on all
  // its tasks, with no variable changed. After that the step takes place: the run ends as usual, or with
  // Error::failed_step() if something that follows the writes waits. Elements that it took from queues are lost, as
  // with any error. base/cancellation.h.
  Cancellation* cancellation = nullptr;

  bool operator==(const RunOptions&) const = default;
};

struct SessionOptions {
  // A session on a server refuses these two and snapshot_memory (UnimplementedError): they are the server's own.
  // {"CPU", 2} makes /cpu:0 and /cpu:1; absent: one CPU. {"GPU", 1} takes only the first GPU that there is, {"GPU", 0}
  // none; absent: all. InvalidArgumentError: GPUs are asked for, but there are none.
  std::map<std::string, int> device_count{};
  // The number of threads for one operation; 0: set_intra_op_threads() chooses it once. Applies to the whole process.
  int intra_op_parallelism_threads = 0;
  Seconds operation_timeout{0};  // for every run; 0: none

  // This and those below isolate_session_state are for sessions on servers. A session of this process refuses them
  // (UnimplementedError).
  std::vector<std::string> device_filters{};  // "/job:ps": the only devices that the session uses; empty: all
  // An operation whose device its task does not have, or which cannot run there, is on the task's CPU instead.
  bool allow_soft_placement = false;
  bool log_device_placement = false;  // the log says where each operation is
  // Variables, queues and tables that no other session sees, and that end with the session. Otherwise sessions on one
  // server share them, by container and name. One in this process has its own anyway.
  bool isolate_session_state = false;
  // The cluster that the session uses instead of its server's, by job and index; a ClusterSpec converts to it. Its
  // state is isolated unless the next option is set.
  std::map<std::string, std::map<int, std::string>> cluster_def{};
  bool share_session_state_in_clusterspec_propagation = false;
  bool use_rpc_for_inprocess_master = false;  // also for a target that is a server of this process
  // How long a run waits for a task that it names and that is not there; absent: as the server says. A session of this
  // process waits for nobody, and so ignores it. SessionManager sets it to its max_wait_secs.
  std::optional<Seconds> task_wait{};

  // The number of bytes that snapshots may hold in addition to the variables themselves. A step that would need more
  // waits, before its first write, until a saver has written enough. Absent: no limit. One snapshot takes at most the
  // size of the variables. Not of variables on GPUs: a snapshot of these is a copy in the host's memory.
  std::optional<uint64_t> snapshot_memory{};
};

// A run that is prepared once and called many times.
class CompiledRun {
 public:
  virtual ~CompiledRun() = default;
  // Takes one value for each named feed. Appends a tensor for each fetch (for an operation: an undefined one). Any
  // thread may call.
  virtual void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) = 0;
};

// The result of make_callable(). May be copied. Any thread may call.
class Callable {
 public:
  Callable() = default;
  explicit Callable(std::shared_ptr<CompiledRun> run) : run_(std::move(run)) {}

  // Takes one argument for each named feed and returns one result for each fetch.
  template <typename... Ts>
    requires(std::is_convertible_v<const Ts&, const Tensor&> && ...)
  std::vector<Tensor> operator()(const Ts&... feeds) const {
    const std::array<const Tensor*, sizeof...(Ts)> pointers{&static_cast<const Tensor&>(feeds)...};
    std::vector<Tensor> results;
    run_->call(pointers, &results);
    return results;
  }
  std::vector<Tensor> call(const std::vector<Tensor>& feeds) const;
  // Appends the results.
  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) const { run_->call(feeds, results); }

 private:
  std::shared_ptr<CompiledRun> run_;
};

// Runs parts of a graph. Variables keep their values between runs, as long as the session (in process) or the server
// lives. Any thread may call any method at any time.
//
// run() and callables throw the errors of the operations, with the operation's name; NotFoundError or
// InvalidArgumentError for fetches and feeds that do not fit the graph; FailedPreconditionError "Attempting to use
// uninitialized value NAME" for a variable that was never assigned; FailedPreconditionError "Attempted to use a closed
// Session." after close().
//
// Where a session is held by a shared_ptr, weak_from_this() leads to it: for threads that keep their session alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Graph& graph() const { return graph_; }

  // Computes a tensor and returns its value, or runs an operation and returns an undefined Tensor. `metadata` receives
  // the records that the options request; if the run fails, it is unchanged.
  Tensor run(const Fetch& fetch, const Feeds& feeds = {}, const RunOptions& options = {},
             proto::RunMetadata* metadata = nullptr);
  // Computes all fetches in one run. Returns one result for each fetch.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {}, const RunOptions& options = {},
                          proto::RunMetadata* metadata = nullptr);
  template <Fetchable T>
  std::vector<Tensor> run(const std::vector<T>& fetches, const Feeds& feeds = {}, const RunOptions& options = {},
                          proto::RunMetadata* metadata = nullptr) {
    return run(std::vector<Fetch>(fetches.begin(), fetches.end()), feeds, options, metadata);
  }

  // Prepares a run for many calls: fetches and feeds are looked up, checked and compiled only once.
  Callable make_callable(const Fetch& fetch, const std::vector<Fetch>& feeds = {});
  Callable make_callable(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds = {});

  // The session's capabilities: computing more in a step, watching steps, keeping memory for snapshots. None by
  // default.
  virtual SessionCapabilities capabilities() { return {}; }

  // Cancels the waits of runs under way (CancelledError "Session::Close"), waits for these runs, and frees the
  // variables and resources. Must not be called from within a run. May be called twice.
  virtual void close() = 0;

  // The same, but waits for the runs for at most half of the time until the deadline, though for a second at least. It
  // may be set during the wait; the other half is for what follows. Runs that take longer are left behind, with what
  // they use. nullptr: no deadline. By default, this is close(), without a limit.
  virtual void close_before(const Deadline* deadline);

  // The devices on which the session's operations may run. In a cluster without those of tasks that do not answer
  // within 2 s: a warning names each. UnimplementedError: this kind of session does not know them.
  virtual std::vector<DeviceAttributes> list_devices();

  // Empties these containers of the target, without names all of them: variables become uninitialised, and queues,
  // readers and tables are gone. All sessions on the target fail with AbortedError from then on, and runs that wait end
  // with it; a new session finds nothing. A container that does not exist is no error. For the target "", these are all
  // sessions of this process; for a server, all on the tasks of its cluster: UnavailableError, which
  // names them, if some of these cannot be reached within 2 s, DeadlineExceededError if some have not answered within
  // 10 s; the others have been reset. NotFoundError: there is no such target.
  static void reset(const std::string& target, const std::vector<std::string>& containers = {});

  struct Request {
    std::vector<Output> feeds;
    std::vector<Fetch::Target> fetches;
    RunOptions options;
  };

 protected:
  explicit Session(Graph& graph) : graph_(graph) {}
  // `metadata` may be null.
  virtual std::vector<Tensor> do_run(const Request& request, std::span<const Tensor* const> feed_values,
                                     proto::RunMetadata* metadata) = 0;
  virtual std::shared_ptr<CompiledRun> do_make_callable(const Request& request) = 0;

 private:
  Request make_request(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds,
                       const RunOptions& options) const;

  Graph& graph_;
};

// Whether the outputs can be computed in a separate run without side effects: they need no feeds, take no elements from
// queues, draw no random numbers and change no variables.
bool is_side_effect_free(const std::vector<Output>& outputs);

// Creates a session. `target` is "" for this process, "local" for a server of this process that is made at first use,
// "grpc://host:port" for any server. longhaul.h installs the default factory.
using SessionFactory =
    std::function<std::unique_ptr<Session>(const std::string& target, Graph& graph, const SessionOptions& options)>;
void install_session_factory(SessionFactory factory);
// What Session::reset() calls.
using SessionResetFunction = std::function<void(const std::string& target, const std::vector<std::string>& containers)>;
void install_session_reset(SessionResetFunction reset);
// FailedPreconditionError: no factory was installed.
std::unique_ptr<Session> new_session(const std::string& target, Graph& graph, const SessionOptions& options = {});

}  // namespace longhaul

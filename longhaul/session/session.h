#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/graph.h"
#include "longhaul/session/capabilities.h"

namespace longhaul {

namespace proto {
class RunMetadata;
}

// What run() can be asked for, or fed: a tensor ("w:0"), an operation ("train"), or the name of either.
class Fetch {
 public:
  Fetch(Operation op) : op_(op) {}
  Fetch(Output output) : op_(output.op()), index_(output.index()) {}
  Fetch(std::string name) : name_(std::move(name)) {}
  Fetch(const char* name) : name_(name) {}
  template <typename T>
    requires(std::is_convertible_v<const T&, Output> && !std::is_same_v<T, Output>)
  Fetch(const T& variable) : Fetch(Output(variable)) {}

  // The operation or output meant. NotFoundError: the graph has no such name. InvalidArgumentError: it is of another
  // graph.
  struct Target {
    Operation op;
    int index = -1;  // -1: the operation itself
    bool is_operation() const { return index < 0; }
    Output output() const { return Output(op, index); }
  };
  Target resolve(const Graph& graph) const;

  // Whether both say it in the same way: "w:0" and the output of that name do not.
  bool operator==(const Fetch&) const = default;

 private:
  Operation op_;
  int index_ = -1;
  std::string name_;
};

using Feeds = std::vector<std::pair<Fetch, Tensor>>;

// What a run records of itself, with the numbers of TensorFlow's RunOptions.TraceLevel. On a CPU, which has no times of
// its own beside the program's, all levels but kNoTrace record the same.
enum class TraceLevel { kNoTrace = 0, kSoftwareTrace = 1, kHardwareTrace = 2, kFullTrace = 3 };

struct RunOptions {
  // The run fails with DeadlineExceededError when an operation of it has waited that long. 0: the session's
  // operation_timeout.
  Seconds timeout{0};

  // All variables are read at one moment between two steps, so that what is fetched belongs together. The run must not
  // write variables. FailedPreconditionError: an earlier step failed halfway, so there is no such moment until the
  // variables are assigned anew.
  bool snapshot = false;

  // For runs with a RunMetadata, into which it goes: when each operation ran, and what it returned (step_stats); the
  // part of the graph that the run needed, with full device names (partition_graphs).
  TraceLevel trace_level = TraceLevel::kNoTrace;
  bool output_partition_graphs = false;

  bool operator==(const RunOptions&) const = default;
};

struct SessionOptions {
  std::map<std::string, int>
      device_count;  // {"CPU", 2} makes /cpu:0 and /cpu:1; absent: one CPU, and the GPUs there are
  // For one operation; 0: set_intra_op_threads() chooses, once. It is a setting of the process.
  int intra_op_parallelism_threads = 0;
  Seconds operation_timeout{0};  // for every run; 0: none

  // How many bytes snapshots may hold beyond the variables themselves. A step that would need more waits, before its
  // first write, until a saver has written enough. Absent: no limit; one snapshot takes at most the variables' own.
  std::optional<uint64_t> snapshot_memory;
};

// A run that was prepared once and is called many times.
class CompiledRun {
 public:
  virtual ~CompiledRun() = default;
  // As many feeds as were named. Appends a tensor for each fetch (of an operation: an undefined one). Any thread.
  virtual void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) = 0;
};

// What make_callable returns; a value to copy. Any thread.
class Callable {
 public:
  Callable() = default;
  explicit Callable(std::shared_ptr<CompiledRun> run) : run_(std::move(run)) {}

  // One argument for each feed that was named, one result for each fetch.
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

// Runs parts of a graph. Variables keep their values between runs, for as long as the session lives (in process) or the
// server does. Any thread may call any method at any time.
//
// Errors of run() and of callables: those of the operations, with the operation's name; NotFoundError,
// InvalidArgumentError for fetches and feeds that do not fit the graph; FailedPreconditionError "Attempting to use
// uninitialized value NAME" for a variable that was never assigned; FailedPreconditionError "Attempted to use
// a closed Session." after close().
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Graph& graph() const { return graph_; }

  // The value of a tensor; of an operation: it is run, and the result is an undefined Tensor. `metadata` becomes what
  // the options ask to be recorded; when the run fails it is left as it was.
  Tensor run(const Fetch& fetch, const Feeds& feeds = {}, const RunOptions& options = {},
             proto::RunMetadata* metadata = nullptr);
  // All in one run; a result for each fetch.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {}, const RunOptions& options = {},
                          proto::RunMetadata* metadata = nullptr);

  // Prepares a run for many calls: looks up, checks and compiles once.
  Callable make_callable(const Fetch& fetch, const std::vector<Fetch>& feeds = {});
  Callable make_callable(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds = {});

  // What the session can do besides: compute more along with a step, tell of steps, keep memory for snapshots. Nothing,
  // unless a session says otherwise.
  virtual SessionCapabilities capabilities() { return {}; }

  // Ends what runs under way wait for (CancelledError "Session::Close"), waits for these runs, and frees the variables
  // and resources. Not to be called from within a run. Twice is fine.
  virtual void close() = 0;

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

// Whether the outputs can be computed by a run of their own without harm: they need no feed, take no element from a
// queue, draw no random numbers and change no variable.
bool is_side_effect_free(const std::vector<Output>& outputs);

// Makes sessions: `target` is "" for this process, "grpc://host:port" for a server. longhaul.h installs the default.
using SessionFactory =
    std::function<std::unique_ptr<Session>(const std::string& target, Graph& graph, const SessionOptions& options)>;
void install_session_factory(SessionFactory factory);
// FailedPreconditionError: none was installed.
std::unique_ptr<Session> new_session(const std::string& target, Graph& graph, const SessionOptions& options = {});

}  // namespace longhaul

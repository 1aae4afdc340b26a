#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/proto/queue_runner.pb.h"
#include "longhaul/session/session.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A thread made by create_threads(). If it is not joined, it continues until its work ends, and keeps alive everything
// that it needs. Any thread may call any method.
class QueueRunnerThread {
 public:
  QueueRunnerThread(std::string name, std::optional<Coordinator> coord, std::function<void()> body);

  const std::string& name() const { return name_; }
  // Call once; from then on its coordinator's join() waits for it. ResourceExhaustedError: see
  // Coordinator::start_thread().
  void start() EXCLUDES(mutex_);
  void join() EXCLUDES(mutex_);            // returns immediately if it was not started
  bool finished() const EXCLUDES(mutex_);  // false: not started, or still running

 private:
  const std::string name_;
  const std::optional<Coordinator> coord_;
  const Coordinator own_;  // used if the caller gave none
  mutable Mutex mutex_;
  std::function<void()> body_ GUARDED_BY(mutex_);
  std::shared_ptr<CoordinatedThread> thread_ GUARDED_BY(mutex_);
};
using QueueRunnerThreads = std::vector<std::shared_ptr<QueueRunnerThread>>;

// An operation to run repeatedly, given as an operation or by name.
struct EnqueueOp {
  EnqueueOp(const Operation& op) : name(op.name()) {}
  EnqueueOp(const Output& output) : name(output.name()) {}
  EnqueueOp(std::string op_name) : name(std::move(op_name)) {}
  EnqueueOp(const char* op_name) : name(op_name) {}
  std::string name;
};

struct QueueRunnerOptions {
  Operation close_op{};   // run at the end of the input; invalid: closes the queue without cancelling waits
  Operation cancel_op{};  // run when a stop is requested; invalid: closes the queue and cancels waits
  // The errors that mean the end of the input.
  std::vector<Code> queue_closed_exception_types{Code::kOutOfRange};
};

// Keeps a queue filled: one thread per enqueue operation runs it until the input ends or a stop is requested. When the
// last of a session's threads has seen the end of the input, the queue is closed. Consumers then get the remaining
// elements, and OutOfRangeError after that. The end of the input does not request a stop.
//
//   add_queue_runner(graph, QueueRunner(scope, queue, {queue.enqueue(scope, {image, label})}));
//   ...
//   start_queue_runners(session, coord);
//
// A QueueRunner is a handle: copies share the list of errors. Any thread may call any method.
class QueueRunner {
 public:
  // Adds the operations that the options leave open. An enqueue operation that is listed twice gets two threads.
  // InvalidArgumentError: no enqueue operation, or no error types.
  QueueRunner(const Scope& scope, const QueueBase& queue, const std::vector<EnqueueOp>& enqueue_ops,
              const QueueRunnerOptions& options = {});
  explicit QueueRunner(proto::QueueRunnerDef def);

  const std::string& name() const { return def_.queue_name(); }  // the name of the queue
  std::vector<std::string> enqueue_ops() const {
    return {def_.enqueue_op_name().begin(), def_.enqueue_op_name().end()};
  }
  const std::string& close_op() const { return def_.close_op_name(); }
  const std::string& cancel_op() const { return def_.cancel_op_name(); }
  std::vector<Code> queue_closed_exception_types() const;
  const proto::QueueRunnerDef& to_proto() const { return def_; }

  // Creates the threads of this queue in that session, named "QueueRunnerThread-<queue>-<operation>". With a
  // coordinator there is one more, "...-close_on_stop", which runs the cancel operation when a stop is requested.
  // Errors are reported to the coordinator or, without one, in exceptions_raised(). Creates none if the session still
  // has running threads for this queue. The threads keep the session alive, and the graph must outlive them.
  // ResourceExhaustedError: a thread cannot be started. The coordinator gets that error too, and the queue is closed,
  // so that running threads end.
  QueueRunnerThreads create_threads(std::shared_ptr<Session> session, std::optional<Coordinator> coord = std::nullopt,
                                    bool start = false) const;

  // The errors of the threads that were created last, if without a coordinator.
  std::vector<std::exception_ptr> exceptions_raised() const;

 private:
  struct Errors;
  struct Run;

  void start_all(const QueueRunnerThreads& threads, Session& session, const std::optional<Coordinator>& coord) const;

  proto::QueueRunnerDef def_;
  std::shared_ptr<Errors> errors_;
};

// Adds the runner to the graph's collection, as bytes that meta graphs include.
void add_queue_runner(Graph& graph, const QueueRunner& runner,
                      const std::string& collection = collections::kQueueRunners);
// The runners in the collection whose name begins with `scope`. DataLossError: the collection contains something else.
std::vector<QueueRunner> queue_runners(const Graph& graph, const std::string& scope = "",
                                       const std::string& collection = collections::kQueueRunners);

// Creates the threads of all runners in a collection of the session's graph. Logs a warning if there are none.
// InvalidArgumentError: no session.
QueueRunnerThreads start_queue_runners(std::shared_ptr<Session> session,
                                       std::optional<Coordinator> coord = std::nullopt, bool start = true,
                                       const std::string& collection = collections::kQueueRunners);

// Returns one queue element per call: a tensor for each component; nullopt, or an OutOfRangeError, at the end.
using ElementSource = std::function<std::optional<std::vector<Tensor>>()>;

// Creates a runner that fills the queue from the program's own code, and adds it to the graph's collection. In each
// session, `threads` threads call `source` repeatedly and concurrently. A call that does not return keeps its thread
// alive beyond a stop. The graph keeps `source` as long as it exists.
QueueRunner enqueue_from(const Scope& scope, const QueueBase& queue, ElementSource source, int threads = 1);

// Adds a scalar summary of how full a queue is: the number of elements beyond `above`, as a fraction of `range`.
void add_fill_summary(const Scope& scope, const QueueBase& queue, const std::string& name, int64_t above,
                      int64_t range);

}  // namespace longhaul

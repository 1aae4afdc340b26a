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

// A thread that create_threads() made. Any thread may call any method. If nobody joins it, it goes on until its work
// ends, and keeps alive what it needs.
class QueueRunnerThread {
 public:
  QueueRunnerThread(std::string name, std::optional<Coordinator> coord, std::function<void()> body);

  const std::string& name() const { return name_; }
  // Once; its coordinator's join() waits for it from then on. ResourceExhaustedError: see Coordinator::start_thread().
  void start() EXCLUDES(mutex_);
  void join() EXCLUDES(mutex_);            // returns at once if it was not started
  bool finished() const EXCLUDES(mutex_);  // false: it was not started, or still runs

 private:
  const std::string name_;
  const std::optional<Coordinator> coord_;
  const Coordinator own_;  // where there is no other
  mutable Mutex mutex_;
  std::function<void()> body_ GUARDED_BY(mutex_);
  std::shared_ptr<CoordinatedThread> thread_ GUARDED_BY(mutex_);
};
using QueueRunnerThreads = std::vector<std::shared_ptr<QueueRunnerThread>>;

// An operation that is run again and again: in the graph, or by name.
struct EnqueueOp {
  EnqueueOp(const Operation& op) : name(op.name()) {}
  EnqueueOp(const Output& output) : name(output.name()) {}
  EnqueueOp(std::string op_name) : name(std::move(op_name)) {}
  EnqueueOp(const char* op_name) : name(op_name) {}
  std::string name;
};

struct QueueRunnerOptions {
  Operation close_op;   // run when the input has ended; invalid: a close of the queue, what waits goes on
  Operation cancel_op;  // run when a stop is requested; invalid: a close that cancels what waits
  // Errors that mean that the input has ended.
  std::vector<Code> queue_closed_exception_types{Code::kOutOfRange};
};

// Keeps a queue filled: a thread for each of its enqueue operations runs that until the input ends or a stop is
// requested. When the last of a session's threads has seen the end of the input, the queue is closed; whoever takes
// from it then gets the rest and OutOfRangeError after it. The end of the input requests no stop.
//
//   add_queue_runner(graph, QueueRunner(scope, queue, {queue.enqueue(scope, {image, label})}));
//   ...
//   start_queue_runners(session, coord);
//
// A handle: copies share the list of errors. Any thread may call any method.
class QueueRunner {
 public:
  // Adds the operations that the options leave open. One that is named twice gets two threads. InvalidArgumentError: no
  // enqueue operation, or no error types.
  QueueRunner(const Scope& scope, const QueueBase& queue, const std::vector<EnqueueOp>& enqueue_ops,
              const QueueRunnerOptions& options = {});
  explicit QueueRunner(proto::QueueRunnerDef def);

  const std::string& name() const { return def_.queue_name(); }  // the queue's
  std::vector<std::string> enqueue_ops() const {
    return {def_.enqueue_op_name().begin(), def_.enqueue_op_name().end()};
  }
  const std::string& close_op() const { return def_.close_op_name(); }
  const std::string& cancel_op() const { return def_.cancel_op_name(); }
  std::vector<Code> queue_closed_exception_types() const;
  const proto::QueueRunnerDef& to_proto() const { return def_; }

  // The threads of this queue in that session, "QueueRunnerThread-<queue>-<operation>"; with a coordinator one more,
  // "...-close_on_stop", that ends waits by the cancel operation when a stop is requested. Errors go to the
  // coordinator, without one into exceptions_raised(). Empty: the session has such threads that have not ended. The
  // threads keep the session alive; the graph must live as long. ResourceExhaustedError: a thread cannot be started;
  // the coordinator has that error, too, and the queue is closed, so that those which run end.
  QueueRunnerThreads create_threads(std::shared_ptr<Session> session, std::optional<Coordinator> coord = std::nullopt,
                                    bool start = false) const;

  // Of the threads made last, without a coordinator.
  std::vector<std::exception_ptr> exceptions_raised() const;

 private:
  struct Errors;
  struct Run;

  void start_all(const QueueRunnerThreads& threads, Session& session, const std::optional<Coordinator>& coord) const;

  proto::QueueRunnerDef def_;
  std::shared_ptr<Errors> errors_;
};

// Lists the runner in the graph's collection, as bytes that a meta graph carries along.
void add_queue_runner(Graph& graph, const QueueRunner& runner,
                      const std::string& collection = collections::kQueueRunners);
// Those whose name begins with `scope`. DataLossError: the collection holds something else.
std::vector<QueueRunner> queue_runners(const Graph& graph, const std::string& scope = "",
                                       const std::string& collection = collections::kQueueRunners);

// The threads of all runners in a collection of the session's graph. An empty collection is logged as a warning.
// InvalidArgumentError: no session.
QueueRunnerThreads start_queue_runners(std::shared_ptr<Session> session,
                                       std::optional<Coordinator> coord = std::nullopt, bool start = true,
                                       const std::string& collection = collections::kQueueRunners);

// Gives an element of a queue at each call: a tensor for each component; nullopt, or an OutOfRangeError, at the end.
using ElementSource = std::function<std::optional<std::vector<Tensor>>()>;

// A runner, listed in the graph's collection, whose threads fill the queue from the program's own code: a session's
// threads call `source` again and again, `threads` of them at the same time. A call that never returns keeps its thread
// beyond a stop. `source` is kept as long as the graph.
QueueRunner enqueue_from(const Scope& scope, const QueueBase& queue, ElementSource source, int threads = 1);

// A scalar summary of how full a queue is: how many elements beyond `above` it holds, of `range`.
void add_fill_summary(const Scope& scope, const QueueBase& queue, const std::string& name, int64_t above,
                      int64_t range);

}  // namespace longhaul

#include "longhaul/train/input/queue_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/graph/missing_name.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/proto/parsed_size.h"

namespace longhaul {
namespace {

// Which queues of which sessions have threads: each once, however often its runner is read from a collection.
class BusyQueues {
 public:
  static BusyQueues& instance() {
    static auto* busy = new BusyQueues;
    return *busy;
  }
  bool take(const Session* session, const std::string& runner) {
    MutexLock lock(mutex_);
    return taken_.insert({session, runner}).second;
  }
  void release(const Session* session, const std::string& runner) {
    MutexLock lock(mutex_);
    taken_.erase({session, runner});
  }

 private:
  Mutex mutex_;
  std::set<std::pair<const Session*, std::string>> taken_ GUARDED_BY(mutex_);
};

void check_in_graph(const Graph& graph, const std::string& name) {
  if (graph.find_output(name).valid() || graph.find_operation(name)) return;
  throw NotFoundError(fmt::format("a queue runner needs '{}': Operation not in the graph. {}", name,
                                  missing_operation_text(graph, name)));
}

// What is run to end a queue may fail, above all because the session is closed.
void run_quietly(Session& session, const std::string& op) {
  try {
    session.run(op);
  } catch (const std::exception& error) {
    log_debug("{}: {}", op, error.what());
  }
}

void close_on_stop(const std::shared_ptr<Session>& session, const std::string& cancel_op, const Coordinator& coord) {
  coord.wait_for_stop();
  run_quietly(*session, cancel_op);
}

}  // namespace

QueueRunnerThread::QueueRunnerThread(std::string name, std::optional<Coordinator> coord, std::function<void()> body)
    : name_(std::move(name)), coord_(std::move(coord)), body_(std::move(body)) {}

void QueueRunnerThread::start() {
  MutexLock lock(mutex_);
  if (thread_) throw FailedPreconditionError("thread " + name_ + " has already been started");
  thread_ = (coord_ ? *coord_ : own_).start_thread(name_, std::exchange(body_, nullptr));
}

void QueueRunnerThread::join() {
  std::shared_ptr<CoordinatedThread> thread;
  {
    MutexLock lock(mutex_);
    thread = thread_;
  }
  if (thread) own_.join({}, {thread});
}

bool QueueRunnerThread::finished() const {
  MutexLock lock(mutex_);
  return thread_ && thread_->finished();
}

struct QueueRunner::Errors {
  Mutex mutex;
  std::vector<std::exception_ptr> raised GUARDED_BY(mutex);
};

// The threads of one create_threads(), which hold it.
struct QueueRunner::Run {
  Run(const QueueRunner& runner, std::shared_ptr<Session> for_session, std::optional<Coordinator> coordinator)
      : key(runner.def_.SerializeAsString()),
        close_op(runner.close_op()),
        end_types(runner.queue_closed_exception_types()),
        session(std::move(for_session)),
        coord(std::move(coordinator)),
        errors(runner.errors_),
        left(runner.def_.enqueue_op_name_size()) {}
  ~Run() { BusyQueues::instance().release(session.get(), key); }
  Run(const Run&) = delete;

  bool is_end(Code code) const { return std::find(end_types.begin(), end_types.end(), code) != end_types.end(); }
  bool stopped() const { return coord && coord->should_stop(); }
  // Whether the thread that ends is the last.
  bool count_end() {
    MutexLock lock(mutex);
    return --left == 0;
  }

  // A thread's work.
  void fill_until_the_end(const std::string& op) {
    bool end_of_input = false;
    std::exception_ptr error;
    try {
      fill(op);
    } catch (...) {
      error = std::current_exception();
      end_of_input = is_end(code_of(error));
    }
    if (end_of_input) error = nullptr;
    // With a coordinator an error stops all threads, and close_on_stop ends the queue. Without one nobody else would,
    // and a dequeue would wait for ever. Whoever sees that close finds the error listed.
    if (error && !coord) list(error);
    const bool last = count_end();
    if (last && (end_of_input || (error && !coord))) run_quietly(*session, close_op);
    if (error && coord) tell_coordinator(error);
  }

  void fill(const std::string& op) {
    check_in_graph(session->graph(), op);
    const Callable enqueue = session->make_callable(op);
    while (!stopped()) enqueue();
  }

  void tell_coordinator(const std::exception_ptr& error) const {
    if (stopped() && code_of(error) == Code::kCancelled) return;  // by close_on_stop
    std::rethrow_exception(error);                                // which its thread reports
  }

  void list(const std::exception_ptr& error) {
    log_error("Exception in QueueRunner: {}", message_of(error));
    MutexLock lock(errors->mutex);
    errors->raised.push_back(error);
  }

  const std::string key, close_op;
  const std::vector<Code> end_types;
  const std::shared_ptr<Session> session;
  const std::optional<Coordinator> coord;
  const std::shared_ptr<Errors> errors;
  Mutex mutex;
  int left GUARDED_BY(mutex);
};

QueueRunner::QueueRunner(proto::QueueRunnerDef def) : def_(std::move(def)), errors_(std::make_shared<Errors>()) {
  if (def_.queue_closed_exception_types().empty()) {
    def_.add_queue_closed_exception_types(proto::error::Code(Code::kOutOfRange));
  }
}

QueueRunner::QueueRunner(const Scope& scope, const QueueBase& queue, const std::vector<EnqueueOp>& enqueue_ops,
                         const QueueRunnerOptions& options)
    : errors_(std::make_shared<Errors>()) {
  if (enqueue_ops.empty()) throw InvalidArgumentError(queue.name() + ": a queue runner needs an enqueue operation");
  if (options.queue_closed_exception_types.empty()) {
    throw InvalidArgumentError(queue.name() + ": queue_closed_exception_types must not be empty");
  }
  const Operation close = options.close_op ? options.close_op : queue.close(scope);
  const Operation cancel = options.cancel_op ? options.cancel_op : queue.close(scope, /*cancel_pending_enqueues=*/true);
  def_.set_queue_name(queue.name());
  for (const EnqueueOp& op : enqueue_ops) def_.add_enqueue_op_name(op.name);
  def_.set_close_op_name(close.name());
  def_.set_cancel_op_name(cancel.name());
  for (Code code : options.queue_closed_exception_types) {
    def_.add_queue_closed_exception_types(proto::error::Code(code));
  }
}

std::vector<Code> QueueRunner::queue_closed_exception_types() const {
  std::vector<Code> codes;
  for (int code : def_.queue_closed_exception_types()) codes.push_back(Code(code));
  return codes;
}

std::vector<std::exception_ptr> QueueRunner::exceptions_raised() const {
  MutexLock lock(errors_->mutex);
  return errors_->raised;
}

// All or none: where one cannot be started, those that run end.
void QueueRunner::start_all(const QueueRunnerThreads& threads, Session& session,
                            const std::optional<Coordinator>& coord) const {
  try {
    for (const auto& thread : threads) thread->start();
  } catch (...) {
    if (coord && !coord->joined()) coord->request_stop(std::current_exception());
    run_quietly(session, cancel_op());
    throw;
  }
}

QueueRunnerThreads QueueRunner::create_threads(std::shared_ptr<Session> session, std::optional<Coordinator> coord,
                                               bool start) const {
  if (!session) throw InvalidArgumentError("create_threads() of a queue runner needs a session");
  if (!BusyQueues::instance().take(session.get(), def_.SerializeAsString())) return {};
  const auto run = std::make_shared<Run>(*this, session, coord);
  {
    MutexLock lock(errors_->mutex);
    errors_->raised.clear();
  }
  QueueRunnerThreads threads;
  const auto add = [&](const std::string& what, std::function<void()> body) {
    threads.push_back(std::make_shared<QueueRunnerThread>(fmt::format("QueueRunnerThread-{}-{}", name(), what), coord,
                                                          std::move(body)));
  };
  for (const std::string& op : def_.enqueue_op_name()) add(op, [run, op] { run->fill_until_the_end(op); });
  if (coord) {
    add("close_on_stop", [session, op = cancel_op(), coord = *coord] { close_on_stop(session, op, coord); });
  }
  if (start) start_all(threads, *session, coord);
  return threads;
}

void add_queue_runner(Graph& graph, const QueueRunner& runner, const std::string& collection) {
  graph.add_to_collection(collection, runner.to_proto().SerializeAsString());
}

std::vector<QueueRunner> queue_runners(const Graph& graph, const std::string& scope, const std::string& collection) {
  std::vector<QueueRunner> runners;
  for (const CollectionItem& item : graph.collection(collection)) {
    const auto* bytes = std::get_if<std::string>(&item);
    proto::QueueRunnerDef def;
    if (bytes == nullptr || !proto::parse_within_limits(*bytes, &def)) {
      throw DataLossError(fmt::format("collection {} has an item that is not a QueueRunnerDef", collection));
    }
    if (def.queue_name().starts_with(scope)) runners.emplace_back(std::move(def));
  }
  return runners;
}

QueueRunnerThreads start_queue_runners(std::shared_ptr<Session> session, std::optional<Coordinator> coord, bool start,
                                       const std::string& collection) {
  if (!session) {
    throw InvalidArgumentError(
        "Cannot start queue runners: pass a session, not a null pointer (`tf.Session` in TensorFlow)");
  }
  const std::vector<QueueRunner> runners = queue_runners(session->graph(), "", collection);
  if (runners.empty()) {
    log_warning("start_queue_runners was called when no queue runners were defined: collection {} is empty",
                collection);
  }
  QueueRunnerThreads threads;
  for (const QueueRunner& runner : runners) {
    for (auto& thread : runner.create_threads(session, coord, start)) threads.push_back(std::move(thread));
  }
  return threads;
}

QueueRunner enqueue_from(const Scope& scope, const QueueBase& queue, ElementSource source, int threads) {
  if (threads < 1)
    throw InvalidArgumentError(fmt::format("{}: the source needs at least 1 thread, not {}", queue.name(), threads));
  const std::string own_name = queue.name().substr(queue.name().rfind('/') + 1);
  const auto next = [source = std::move(source), name = queue.name()](const std::vector<Tensor>&) {
    std::optional<std::vector<Tensor>> element = source();
    if (!element) throw OutOfRangeError(name + ": the source has ended");
    return *std::move(element);
  };
  const Operation call = ops::host_function(scope, {}, queue.dtypes(), next, own_name + "_source");
  std::vector<Output> components;
  for (int i = 0; i < call.num_outputs(); ++i) components.push_back(call.output(i));
  const EnqueueOp enqueue = queue.enqueue(scope, components);
  QueueRunner runner(scope, queue, std::vector<EnqueueOp>(static_cast<size_t>(threads), enqueue));
  add_queue_runner(scope.graph(), runner);
  return runner;
}

void add_fill_summary(const Scope& scope, const QueueBase& queue, const std::string& name, int64_t above,
                      int64_t range) {
  const Output fraction =
      scope.add("FractionFull", "fraction", {queue.size(scope)}, {{"above", above}, {"range", range}}).output();
  summary::scalar(scope, name, fraction);
}

}  // namespace longhaul

#include "longhaul/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "longhaul/graph/missing_name.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {

Fetch::Target Fetch::resolve(const Graph& graph) const {
  if (name_.empty()) {
    if (!op_) {
      throw InvalidArgumentError(
          "a fetch or feed is an empty Operation or Output: it was never assigned, or comes from a lookup that found "
          "nothing");
    }
    if (&op_.graph() != &graph) {
      throw InvalidArgumentError(
          fmt::format("{} belongs to another graph than this session (with {} operations; the session's graph has {}): "
                      "create the session, or the Supervisor, with that graph",
                      op_.name(), op_.graph().num_operations(), graph.num_operations()));
    }
    return {op_, index_};
  }
  if (const Output output = graph.find_output(name_); output.valid()) return {output.op(), output.index()};
  const Operation op = graph.find_operation(name_);
  if (op) return {op, -1};
  const bool is_tensor = name_.find(':') != std::string::npos;
  throw NotFoundError(is_tensor ? missing_tensor_text(graph, name_) : missing_operation_text(graph, name_));
}

namespace {

// Running an operation gives no tensor. Of one that does nothing but compute some, these were probably wanted.
void explain_nothing(const Fetch::Target& fetch, Tensor* result) {
  if (!fetch.is_operation() || result->defined() || fetch.op.num_outputs() == 0) return;
  if ((fetch.op.traits() & kWritesVariable) != 0) return;
  *result =
      Tensor::none(fmt::format("'{0}' was run as an operation, which returns no tensor: fetch '{0}:0' for its "
                               "value",
                               fetch.op.name()));
}

}  // namespace

std::vector<Tensor> Callable::call(const std::vector<Tensor>& feeds) const {
  std::vector<const Tensor*> pointers;
  for (const Tensor& feed : feeds) pointers.push_back(&feed);
  std::vector<Tensor> results;
  run_->call(pointers, &results);
  return results;
}

Tensor Session::run(const Fetch& fetch, const Feeds& feeds, const RunOptions& options, proto::RunMetadata* metadata) {
  return run(std::vector<Fetch>{fetch}, feeds, options, metadata)[0];
}

std::vector<Tensor> Session::run(const std::vector<Fetch>& fetches, const Feeds& feeds, const RunOptions& options,
                                 proto::RunMetadata* metadata) {
  std::vector<Fetch> keys;
  std::vector<const Tensor*> values;
  for (const auto& [key, value] : feeds) {
    keys.push_back(key);
    values.push_back(&value);
  }
  const Request request = make_request(fetches, keys, options);
  std::vector<Tensor> results = do_run(request, values, metadata);
  for (size_t i = 0; i < results.size(); ++i) explain_nothing(request.fetches[i], &results[i]);
  return results;
}

Callable Session::make_callable(const Fetch& fetch, const std::vector<Fetch>& feeds) {
  return make_callable(std::vector<Fetch>{fetch}, feeds);
}

Callable Session::make_callable(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds) {
  return Callable(do_make_callable(make_request(fetches, feeds, {})));
}

Session::Request Session::make_request(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds,
                                       const RunOptions& options) const {
  Request request{.options = options};
  for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph_));
  std::unordered_set<Output, OutputHash> seen;
  for (const Fetch& feed : feeds) {
    Fetch::Target target = feed.resolve(graph_);
    if (target.is_operation() && target.op.num_outputs() == 1) target.index = 0;
    if (target.is_operation()) {
      throw InvalidArgumentError(fmt::format("{} ({}) cannot be fed: it is an operation; its tensors are {}",
                                             target.op.name(), target.op.type(), tensors_text(target.op)));
    }
    if (!seen.insert(target.output()).second) {
      throw InvalidArgumentError(fmt::format("{} is fed twice in one run", target.output().name()));
    }
    request.feeds.push_back(target.output());
  }
  return request;
}

void Session::close_before(const Deadline*) {
  close();
}

std::vector<DeviceAttributes> Session::list_devices() {
  throw UnimplementedError("this kind of session cannot list its devices; ask a session made by new_session()");
}

bool is_side_effect_free(const std::vector<Output>& outputs) {
  std::vector<Operation> targets;
  for (const Output& output : outputs) targets.push_back(output.op());
  const std::vector<Operation> needed = needed_operations(targets);
  return std::none_of(needed.begin(), needed.end(), [](const Operation& op) {
    return (op.traits() & (kTakesInput | kRandom | kWritesVariable)) != 0;
  });
}

namespace {

struct InstalledFactory {
  Mutex mutex;
  SessionFactory factory GUARDED_BY(mutex);
  SessionResetFunction reset GUARDED_BY(mutex);
};

InstalledFactory& installed() {
  static InstalledFactory* instance = new InstalledFactory;
  return *instance;
}

}  // namespace

void install_session_factory(SessionFactory factory) {
  MutexLock lock(installed().mutex);
  installed().factory = std::move(factory);
}

void install_session_reset(SessionResetFunction reset) {
  MutexLock lock(installed().mutex);
  installed().reset = std::move(reset);
}

void Session::reset(const std::string& target, const std::vector<std::string>& containers) {
  SessionResetFunction reset;
  {
    MutexLock lock(installed().mutex);
    reset = installed().reset;
  }
  if (!reset)
    throw FailedPreconditionError(
        "no session implementation is installed; #include <longhaul/longhaul.h> installs one");
  reset(target, containers);
}

std::unique_ptr<Session> new_session(const std::string& target, Graph& graph, const SessionOptions& options) {
  SessionFactory factory;
  {
    MutexLock lock(installed().mutex);
    factory = installed().factory;
  }
  if (!factory)
    throw FailedPreconditionError(
        "no session implementation is installed; #include <longhaul/longhaul.h> installs one");
  return factory(target, graph, options);
}

}  // namespace longhaul

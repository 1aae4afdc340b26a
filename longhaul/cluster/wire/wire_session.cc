#include "longhaul/cluster/wire/wire_session.h"

#include <fmt/format.h>

#include <set>

#include "longhaul/base/deadline.h"
#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/wire/graph_extension.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

constexpr size_t kMostCallables = 10'000;

std::string tensor_name_of(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":0" : name;
}

void check_feeds(const WireRun& run, const std::vector<Tensor>& values) {
  if (values.size() != run.feeds.size())
    throw InvalidArgumentError(fmt::format("the run takes {} feeds, but got {}", run.feeds.size(), values.size()));
  std::set<std::string> seen;
  for (const std::string& feed : run.feeds) {
    if (!seen.insert(tensor_name_of(feed)).second)
      throw InvalidArgumentError(fmt::format("Duplicated feeds: {} has two values", excerpt(feed)));
  }
}

// The tensors, then the targets.
std::vector<Fetch> fetches_of(const WireRun& run) {
  std::vector<Fetch> fetches;
  for (const std::string& name : run.fetches) fetches.emplace_back(tensor_name_of(name));
  for (const std::string& name : run.targets) fetches.emplace_back(std::string(operation_name(name)));
  return fetches;
}

bool wants_metadata(const RunOptions& options) {
  return options.trace_level != TraceLevel::kNoTrace || options.output_partition_graphs;
}

}  // namespace

WireSession::WireSession(const proto::GraphDef& nodes, const SessionOptions& options, const NewSession& make)
    : operation_timeout_(options.operation_timeout) {
  start_graph(graph_, nodes);
  session_ = make(graph_, options);
}

int64_t WireSession::extend(const proto::GraphDef& nodes, int64_t current_version) {
  check_open();
  MutexLock lock(extending_);
  if (current_version != version_)
    throw AbortedError(fmt::format("Current version is {} but caller expected {}.", version_, current_version));
  extend_graph(graph_, nodes);
  return ++version_;
}

std::vector<Tensor> WireSession::run(const WireRun& run, const std::vector<Tensor>& feed_values,
                                     proto::RunMetadata* metadata) {
  check_open();
  check_feeds(run, feed_values);
  Feeds feeds;
  for (size_t i = 0; i < run.feeds.size(); ++i) feeds.emplace_back(tensor_name_of(run.feeds[i]), feed_values[i]);
  std::vector<Tensor> values =
      session_->run(fetches_of(run), feeds, run.options, wants_metadata(run.options) ? metadata : nullptr);
  values.resize(run.fetches.size());
  return values;
}

std::vector<DeviceAttributes> WireSession::list_devices() {
  check_open();
  return session_->list_devices();
}

int64_t WireSession::make_callable(WireRun run) {
  check_open();
  for (const std::string& feed : run.feeds) Fetch(tensor_name_of(feed)).resolve(graph_);
  for (const Fetch& fetch : fetches_of(run)) fetch.resolve(graph_);
  MutexLock lock(mutex_);
  if (callables_.size() >= kMostCallables)
    throw ResourceExhaustedError(
        fmt::format("the session has {} callables, which is the most: release some", kMostCallables));
  callables_.emplace(next_callable_, std::make_shared<const WireRun>(std::move(run)));
  return next_callable_++;
}

std::shared_ptr<const WireRun> WireSession::callable(int64_t handle) {
  MutexLock lock(mutex_);
  if (handle < 0 || handle >= next_callable_)
    throw InvalidArgumentError(fmt::format("No such callable handle: {}", handle));
  const auto found = callables_.find(handle);
  if (found == callables_.end())
    throw InvalidArgumentError(fmt::format("Attempted to run callable after handle was released: {}", handle));
  return found->second;
}

void WireSession::release_callable(int64_t handle) {
  MutexLock lock(mutex_);
  callables_.erase(handle);
}

void WireSession::close(const Deadline& deadline) {
  {
    MutexLock lock(mutex_);
    is_closed_ = true;
  }
  session_->close_before(&deadline);
}

void WireSession::check_open() {
  MutexLock lock(mutex_);
  if (is_closed_) throw FailedPreconditionError("Session is closed.");
}

}  // namespace longhaul

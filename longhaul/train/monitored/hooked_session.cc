#include "longhaul/train/monitored/hooked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "longhaul/base/log.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/needed_operations.h"
#include "longhaul/tensor/lost_value.h"
#include "longhaul/train/hooks/hook_call.h"

namespace longhaul {
namespace {

void merge_cancellation(RunOptions& options, const RunOptions& more) {
  if (more.cancellation == nullptr || more.cancellation == options.cancellation) return;
  if (options.cancellation != nullptr)
    throw InvalidArgumentError(
        "RunOptions::cancellation is set twice for one run, by its caller and a hook or by two hooks: a run has one, "
        "so let them share it");
  options.cancellation = more.cancellation;
}

void merge(RunOptions& options, const RunOptions& more) {
  merge_cancellation(options, more);
  options.timeout = std::max(options.timeout, more.timeout);
  options.snapshot = options.snapshot || more.snapshot;
  options.trace_level = std::max(options.trace_level, more.trace_level);
  options.output_partition_graphs = options.output_partition_graphs || more.output_partition_graphs;
}

// Where a step is known to be made although its session was lost. Elsewhere the variables are lost with it.
bool is_on_servers(Session& session) {
  return session.capabilities().step_fates != nullptr;
}

// Whether it may be computed for a step that was made before. Random numbers are others then.
bool is_repeatable(const Fetch& fetch, const Feeds& feeds, const Graph& graph) {
  std::vector<Output> fed;
  for (const auto& [key, value] : feeds) {
    const Fetch::Target target = key.resolve(graph);
    fed.emplace_back(target.op, std::max(target.index, 0));
  }
  const std::vector<Operation> needed = needed_operations({fetch.resolve(graph).op}, fed);
  return std::none_of(needed.begin(), needed.end(), [](const Operation& op) {
    return (op.traits() & (kTakesInput | kWritesVariable | kSideEffect)) != 0;
  });
}

bool has_lost_results(std::span<const Tensor> results) {
  return std::any_of(results.begin(), results.end(), is_lost_value);
}

bool wants_metadata(const RunOptions& options) {
  return options.trace_level != TraceLevel::kNoTrace || options.output_partition_graphs;
}

}  // namespace

HookedSession::HookedSession(std::shared_ptr<Session> session, SessionRunHooks hooks)
    : session_(std::move(session)),
      hooks_(std::move(hooks)),
      steps_by_hooks_(session_->graph()),
      parts_(hooks_.size() + 1) {}

std::vector<Tensor> HookedSession::run(const SessionRunArgs& args, std::span<const Tensor* const> feed_values,
                                       proto::RunMetadata* metadata) {
  if (stop_requested_) throw RunAfterStopError();
  SessionRunContext context(*session_, args, feed_values);
  parts_[0] = &args;
  was_made_ = false;
  lost_ = {};
  try {
    std::vector<Tensor> results = run_with_hooks(context, feed_values, metadata);
    stop_requested_ = context.stop_requested();
    results.resize(args.fetches.size());
    return results;
  } catch (...) {
    stop_requested_ = context.stop_requested();
    lost_.session = session_;
    lost_.step = failed_step_of(std::current_exception());
    if (was_made_ && is_on_servers(*session_)) lost_.step.fate = StepFate::kCommitted;
    throw;
  }
}

// The results of all parts.
std::vector<Tensor> HookedSession::run_with_hooks(SessionRunContext& context,
                                                  std::span<const Tensor* const> feed_values,
                                                  proto::RunMetadata* metadata) {
  ask_hooks(context);
  const RunOptions options = merged_options();
  std::optional<proto::RunMetadata> own_metadata;
  if (metadata == nullptr && wants_metadata(options)) metadata = &own_metadata.emplace();
  std::vector<Tensor> results;
  if (completes_next_) {
    parts_[0] = &context.original_args();
    results = run_rest(options, metadata);
  } else if (metadata == nullptr && options == RunOptions()) {
    results = run_compiled(feed_values);
  } else {
    parts_[0] = &context.original_args();
    check_feeds();
    steps_by_hooks_.look(parts_, hooks_);
    results = session_->run(merge_fetches(), merged_feeds(), options, metadata);
  }
  was_made_ = true;
  completes_next_ = false;
  try {
    tell_hooks(context, results, options, metadata);
  } catch (...) {
    lost_.results = std::move(results);
    lost_.results.resize(context.original_args().fetches.size());
    throw;
  }
  return results;
}

void HookedSession::ask_hooks(SessionRunContext& context) {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    SessionRunHook& hook = *hooks_[i];
    const SessionRunArgs* wanted = nullptr;
    call_hook(hook, "before_run", [&] { wanted = hook.before_run(context); });
    parts_[i + 1] = wanted != nullptr ? wanted : &nothing_;
  }
}

RunOptions HookedSession::merged_options() const {
  RunOptions options;
  for (const SessionRunArgs* part : parts_) merge(options, part->options);
  return options;
}

std::vector<Fetch> HookedSession::merge_fetches() {
  std::vector<Fetch> all;
  first_results_.clear();
  for (const SessionRunArgs* part : parts_) {
    const auto found = std::search(all.begin(), all.end(), part->fetches.begin(), part->fetches.end());
    first_results_.push_back(static_cast<size_t>(found - all.begin()));
    if (found == all.end()) all.insert(all.end(), part->fetches.begin(), part->fetches.end());
  }
  return all;
}

Feeds HookedSession::merged_feeds() const {
  Feeds feeds;
  for (const SessionRunArgs* part : parts_) feeds.insert(feeds.end(), part->feeds.begin(), part->feeds.end());
  return feeds;
}

void HookedSession::check_feeds() const {
  std::unordered_map<Output, const SessionRunArgs*, OutputHash> fed_by;
  for (const SessionRunArgs* part : parts_) {
    for (const auto& [key, value] : part->feeds) {
      const Fetch::Target target = key.resolve(session_->graph());
      const Output output(target.op, std::max(target.index, 0));
      const auto [it, is_new] = fed_by.emplace(output, part);
      if (is_new || it->second == part) continue;
      throw FailedPreconditionError(fmt::format("Same tensor is fed by {}: {}",
                                                it->second == parts_[0] ? "a hook and the caller" : "two hooks",
                                                output.name()));
    }
  }
}

std::vector<Tensor> HookedSession::run_compiled(std::span<const Tensor* const> feed_values) {
  const Compiled& run = compiled();
  first_results_ = run.first_results;
  feed_values_.assign(feed_values.begin(), feed_values.end());
  for (const SessionRunArgs* part : parts_) {
    if (part == parts_[0] && !feed_values.empty()) continue;
    for (const auto& [key, value] : part->feeds) feed_values_.push_back(&value);
  }
  std::vector<Tensor> results;
  run.callable.call(feed_values_, &results);
  return results;
}

std::vector<Tensor> HookedSession::run_rest(const RunOptions& options, proto::RunMetadata* metadata) {
  const std::vector<Fetch> all = merge_fetches();
  const Feeds feeds = merged_feeds();
  std::vector<Tensor> results(
      all.size(),
      lost_value("the step of this run was committed, but its session was lost with the results. Look at defined() "
                 "first, or start the program again: it continues with the next step"));
  std::vector<Fetch> rest;
  std::vector<size_t> places;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].resolve(session_->graph()).index < 0) results[i] = Tensor();  // an operation, which has none
    if (!is_repeatable(all[i], feeds, session_->graph())) continue;
    rest.push_back(all[i]);
    places.push_back(i);
  }
  if (rest.empty()) return results;
  const std::vector<Tensor> values = session_->run(rest, feeds, options, metadata);
  for (size_t i = 0; i < places.size(); ++i) results[places[i]] = values[i];
  return results;
}

const HookedSession::Compiled& HookedSession::compiled() {
  constexpr size_t kMost = 16;
  const auto found = std::find_if(compiled_.begin(), compiled_.end(), [&](auto& it) { return is_of_this_kind(it); });
  if (found != compiled_.end()) {
    std::rotate(compiled_.begin(), found, found + 1);
    return compiled_.front();
  }
  if (compiled_.size() == kMost) compiled_.pop_back();
  return *compiled_.insert(compiled_.begin(), compile());
}

HookedSession::Compiled HookedSession::compile() {
  check_feeds();
  steps_by_hooks_.look(parts_, hooks_);
  Compiled made;
  std::vector<Fetch> all_feeds;
  for (const SessionRunArgs* part : parts_) {
    made.fetches.push_back(part->fetches);
    std::vector<Fetch>& feeds = made.feeds.emplace_back();
    for (const auto& [key, value] : part->feeds) feeds.push_back(key);
    all_feeds.insert(all_feeds.end(), feeds.begin(), feeds.end());
  }
  made.callable = session_->make_callable(merge_fetches(), all_feeds);
  made.first_results = first_results_;
  return made;
}

bool HookedSession::is_of_this_kind(const Compiled& compiled) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const SessionRunArgs& part = *parts_[i];
    if (part.fetches != compiled.fetches[i]) return false;
    const auto same_key = [](const auto& feed, const Fetch& key) { return feed.first == key; };
    if (!std::equal(part.feeds.begin(), part.feeds.end(), compiled.feeds[i].begin(), compiled.feeds[i].end(), same_key))
      return false;
  }
  return true;
}

void HookedSession::tell_hooks(SessionRunContext& context, std::span<const Tensor> results, const RunOptions& options,
                               const proto::RunMetadata* metadata) {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    SessionRunHook& hook = *hooks_[i];
    const SessionRunValues values{.results = results.subspan(first_results_[i + 1], parts_[i + 1]->fetches.size()),
                                  .options = &options,
                                  .run_metadata = metadata};
    if (has_lost_results(values.results)) {
      log_info("{} does not see the last run: the session was lost with its results", class_name(hook));
      continue;
    }
    call_hook(hook, "after_run", [&] { hook.after_run(context, values); });
  }
}

}  // namespace longhaul

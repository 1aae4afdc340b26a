#include "longhaul/train/hooked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "longhaul/proto/config.pb.h"
#include "longhaul/train/hook_call.h"

namespace longhaul {
namespace {

void merge(RunOptions& options, const RunOptions& more) {
  options.timeout = std::max(options.timeout, more.timeout);
  options.snapshot = options.snapshot || more.snapshot;
  options.trace_level = std::max(options.trace_level, more.trace_level);
  options.output_partition_graphs = options.output_partition_graphs || more.output_partition_graphs;
}

bool wants_metadata(const RunOptions& options) {
  return options.trace_level != TraceLevel::kNoTrace || options.output_partition_graphs;
}

}  // namespace

HookedSession::HookedSession(std::shared_ptr<Session> session, SessionRunHooks hooks)
    : session_(std::move(session)), hooks_(std::move(hooks)), parts_(hooks_.size() + 1) {}

std::vector<Tensor> HookedSession::run(const SessionRunArgs& args, proto::RunMetadata* metadata) {
  if (stop_requested_) throw FailedPreconditionError("Run called even after should_stop requested.");
  SessionRunContext context(*session_, args);
  parts_[0] = &args;
  ask_hooks(context);
  const RunOptions options = merged_options();
  std::optional<proto::RunMetadata> own_metadata;
  if (metadata == nullptr && wants_metadata(options)) metadata = &own_metadata.emplace();
  if (metadata == nullptr && options == RunOptions()) {
    run_compiled();
  } else {
    check_feeds();
    results_ = session_->run(merged_fetches(), merged_feeds(), options, metadata);
  }
  tell_hooks(context, options, metadata);
  stop_requested_ = context.stop_requested();
  return take_results_of_caller();
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

std::vector<Fetch> HookedSession::merged_fetches() const {
  std::vector<Fetch> fetches;
  for (const SessionRunArgs* part : parts_) fetches.insert(fetches.end(), part->fetches.begin(), part->fetches.end());
  return fetches;
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

void HookedSession::run_compiled() {
  const Callable& callable = compiled();
  feed_values_.clear();
  for (const SessionRunArgs* part : parts_) {
    for (const auto& [key, value] : part->feeds) feed_values_.push_back(&value);
  }
  results_.clear();
  callable.call(feed_values_, &results_);
}

const Callable& HookedSession::compiled() {
  constexpr size_t kMost = 16;
  const auto found = std::find_if(compiled_.begin(), compiled_.end(), [&](auto& it) { return is_of_this_kind(it); });
  if (found != compiled_.end()) {
    std::rotate(compiled_.begin(), found, found + 1);
    return compiled_.front().callable;
  }
  check_feeds();
  Compiled made{.fetches = merged_fetches()};
  for (const auto& [key, value] : merged_feeds()) made.feeds.push_back(key);
  made.callable = session_->make_callable(made.fetches, made.feeds);
  if (compiled_.size() == kMost) compiled_.pop_back();
  return compiled_.insert(compiled_.begin(), std::move(made))->callable;
}

bool HookedSession::is_of_this_kind(const Compiled& compiled) const {
  size_t fetches = 0, feeds = 0;
  for (const SessionRunArgs* part : parts_) {
    for (const Fetch& fetch : part->fetches) {
      if (fetches == compiled.fetches.size() || !(compiled.fetches[fetches++] == fetch)) return false;
    }
    for (const auto& [key, value] : part->feeds) {
      if (feeds == compiled.feeds.size() || !(compiled.feeds[feeds++] == key)) return false;
    }
  }
  return fetches == compiled.fetches.size() && feeds == compiled.feeds.size();
}

void HookedSession::tell_hooks(SessionRunContext& context, const RunOptions& options,
                               const proto::RunMetadata* metadata) {
  std::span<const Tensor> left = std::span<const Tensor>(results_).subspan(parts_[0]->fetches.size());
  for (size_t i = 0; i < hooks_.size(); ++i) {
    SessionRunHook& hook = *hooks_[i];
    const size_t count = parts_[i + 1]->fetches.size();
    const SessionRunValues values{.results = left.first(count), .options = &options, .run_metadata = metadata};
    left = left.subspan(count);
    call_hook(hook, "after_run", [&] { hook.after_run(context, values); });
  }
}

std::vector<Tensor> HookedSession::take_results_of_caller() {
  const auto begin = std::make_move_iterator(results_.begin());
  std::vector<Tensor> results(begin, begin + static_cast<std::ptrdiff_t>(parts_[0]->fetches.size()));
  results_.clear();  // tensors that nobody holds are used again by the next run
  return results;
}

}  // namespace longhaul

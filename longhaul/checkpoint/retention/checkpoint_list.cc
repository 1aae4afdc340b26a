#include "longhaul/checkpoint/retention/checkpoint_list.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {

void CheckpointList::add(const std::string& prefix, double time, std::optional<double> metric,
                         const std::string& held) {
  std::erase(marked_for_deletion_, prefix);
  const bool was_pinned = kept_[prefix].pinned;
  kept_[prefix] = {.pinned = was_pinned, .metric = metric && !std::isnan(*metric) ? metric : std::nullopt};
  if (retention_.max_to_keep > 0) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.prefix == prefix; });
    entries_.push_back({prefix, time});
    release_older_than(prefix);
    if (held != prefix) hold(held);
    retire_what_is_too_many();
  }
  mark_what_is_no_longer_held();
}

void CheckpointList::hold(const std::string& prefix) {
  if (is_listed(prefix)) held_.insert(prefix);
  const std::optional<int64_t> step = split_step(prefix).step;
  if (is_listed(prefix) || !step) return;
  const Entry* newest = nullptr;
  for (const Entry& entry : entries_) {
    const std::optional<int64_t> own = split_step(entry.prefix).step;
    if (own < step && own && (newest == nullptr || split_step(newest->prefix).step < own)) newest = &entry;
  }
  if (newest != nullptr) held_.insert(newest->prefix);
}

void CheckpointList::release_older_than(const std::string& prefix) {
  const std::optional<int64_t> step = split_step(prefix).step;
  std::erase_if(held_, [&](const std::string& held) { return held == prefix || split_step(held).step < step; });
}

std::deque<CheckpointList::Entry>::iterator CheckpointList::oldest_not_held() {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& each) { return !held_.contains(each.prefix); });
}

std::set<std::string> CheckpointList::kept_behind() const {
  if (!behind_ || entries_.empty()) return {};
  const std::optional<int64_t> newest = split_step(entries_.back().prefix).step;
  std::optional<int64_t> least = newest;
  std::string next;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const std::optional<int64_t> step = split_step(entry->prefix).step;
    if (!step || step > least) continue;
    least = step;
    if (*step <= *newest - *behind_) return {entry->prefix, next};
    next = entry->prefix;
  }
  return {next};
}

// The one that the new one pushes out, and one more: who has lowered max_to_keep by mistake loses one old checkpoint
// with each save, not all at the first.
void CheckpointList::retire_what_is_too_many() {
  constexpr int kMostAtOnce = 2;
  const std::set<std::string> behind = kept_behind();
  const auto too_many = [&] {
    const auto count = [&] {
      const size_t kept = entries_.size() - held_.size(), limit = static_cast<size_t>(retention_.max_to_keep);
      return kept > limit ? kept - limit : 0;
    };
    while (count() > 0 && behind.contains(oldest_not_held()->prefix)) held_.insert(oldest_not_held()->prefix);
    return count();
  };
  for (int retired = 0; retired < kMostAtOnce && too_many() > 0; ++retired) {
    const auto oldest = oldest_not_held();
    const Entry entry = std::move(*oldest);
    entries_.erase(oldest);
    retire(entry);
  }
  if (too_many() > 0) {
    log_info("there are {} checkpoints more than max_to_keep = {}: each save deletes one of them; {} is next",
             too_many(), retention_.max_to_keep, oldest_not_held()->prefix);
  }
}

void CheckpointList::retire(const Entry& entry) {
  if (const auto kept = kept_.find(entry.prefix); kept != kept_.end()) {
    kept->second.fallen_out = true;
    if (is_pinned_or_best(entry.prefix)) return;
    kept_.erase(kept);
  }
  if (is_to_be_preserved(entry, last_preserved_)) {
    last_preserved_ = entry.time;
  } else {
    marked_for_deletion_.push_back(entry.prefix);
  }
}

bool CheckpointList::is_pinned_or_best(const std::string& prefix) const {
  const auto kept = kept_.find(prefix);
  if (kept == kept_.end()) return false;
  const std::vector<std::string> best = this->best();
  return kept->second.pinned || std::find(best.begin(), best.end(), prefix) != best.end();
}

bool CheckpointList::is_to_be_preserved(const Entry& entry, double last_preserved) const {
  const double interval = retention_.keep_checkpoint_every_n_hours * 3600;
  return interval > 0 && entry.time - interval >= last_preserved;
}

std::vector<std::string> CheckpointList::droppable() const {
  std::vector<std::string> prefixes;
  double last_preserved = last_preserved_;
  const std::set<std::string> behind = kept_behind();
  for (size_t i = 0; i + 1 < entries_.size(); ++i) {
    const std::string& prefix = entries_[i].prefix;
    if (held_.contains(prefix) || behind.contains(prefix) || is_pinned_or_best(prefix)) continue;
    if (is_to_be_preserved(entries_[i], last_preserved)) {
      last_preserved = entries_[i].time;
    } else {
      prefixes.push_back(entries_[i].prefix);
    }
  }
  return prefixes;
}

void CheckpointList::drop(const std::string& prefix) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.prefix == prefix; });
  kept_.erase(prefix);
  marked_for_deletion_.push_back(prefix);
}

void CheckpointList::mark_for_deletion(const std::string& prefix) {
  if (retention_.max_to_keep == 0 || is_listed(prefix) || kept_.contains(prefix)) return;
  if (std::find(marked_for_deletion_.begin(), marked_for_deletion_.end(), prefix) == marked_for_deletion_.end())
    marked_for_deletion_.push_back(prefix);
}

void CheckpointList::mark_what_is_no_longer_held() {
  const std::vector<std::string> best = this->best();
  std::erase_if(kept_, [&](const auto& item) {
    const auto& [prefix, kept] = item;
    const bool held = kept.pinned || std::find(best.begin(), best.end(), prefix) != best.end();
    if (!held && kept.fallen_out && retention_.max_to_keep > 0) marked_for_deletion_.push_back(prefix);
    return !held && (kept.fallen_out || !kept.metric);
  });
}

void CheckpointList::reset(const std::vector<std::string>& prefixes, const std::vector<double>& times) {
  entries_.clear();
  held_.clear();
  for (size_t i = 0; i < prefixes.size(); ++i) {
    std::erase(marked_for_deletion_, prefixes[i]);
    if (const auto kept = kept_.find(prefixes[i]); kept != kept_.end()) kept->second.fallen_out = false;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.prefix == prefixes[i]; });
    if (retention_.max_to_keep > 0) entries_.push_back({prefixes[i], times[i]});
  }
}

void CheckpointList::set_last_preserved(double last_preserved, double now) {
  if (last_preserved <= 0) return;
  if (last_preserved > now) {
    log_warning("the clock is {:.0f} s behind the last preserved checkpoint timestamp", last_preserved - now);
  }
  last_preserved_ = std::min(last_preserved, now);
}

void CheckpointList::pin(const std::string& prefix) {
  KeptCheckpoint& kept = kept_[prefix];
  kept.pinned = true;
  if (std::erase(marked_for_deletion_, prefix) > 0) kept.fallen_out = true;
}

void CheckpointList::take_metric(const std::string& prefix, double metric) {
  KeptCheckpoint& kept = kept_[prefix];
  kept.metric = metric;
  if (std::erase(marked_for_deletion_, prefix) > 0) kept.fallen_out = true;
}

void CheckpointList::unpin(const std::string& prefix) {
  const auto kept = kept_.find(prefix);
  if (kept == kept_.end()) return;
  kept->second.pinned = false;
  if (!kept->second.fallen_out && !kept->second.metric) kept_.erase(kept);
}

std::vector<std::string> CheckpointList::pinned() const {
  std::vector<std::string> prefixes;
  for (const auto& [prefix, kept] : kept_) {
    if (kept.pinned) prefixes.push_back(prefix);
  }
  return prefixes;
}

std::vector<std::string> CheckpointList::best() const {
  std::vector<std::string> prefixes;
  for (const auto& [prefix, kept] : kept_) {
    if (kept.metric) prefixes.push_back(prefix);
  }
  std::sort(prefixes.begin(), prefixes.end(), [&](const std::string& a, const std::string& b) {
    const double x = *kept_.at(a).metric, y = *kept_.at(b).metric;
    if (x != y) return retention_.best.mode == MetricMode::kMax ? x > y : x < y;
    return split_step(a).step > split_step(b).step;
  });
  if (prefixes.size() > static_cast<size_t>(retention_.best.top_k)) {
    prefixes.resize(static_cast<size_t>(retention_.best.top_k));
  }
  return prefixes;
}

bool CheckpointList::is_listed(const std::string& prefix) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.prefix == prefix; });
}

void CheckpointList::adopt(const KeptCheckpoints& kept, const KeptCheckpoints& before) {
  const auto in = [](const KeptCheckpoints& all, const std::string& prefix) {
    const auto found = all.find(prefix);
    return found == all.end() ? KeptCheckpoint() : found->second;
  };
  for (const auto& [prefix, now] : kept) {
    const KeptCheckpoint then = in(before, prefix);
    if (now == then) continue;
    KeptCheckpoint& known = kept_[prefix];
    if (now.metric != then.metric && now.metric) known.metric = now.metric;
    known.fallen_out = !is_listed(prefix) && (known.fallen_out || now.fallen_out);
    if (now.pinned && !then.pinned) pin(prefix);
    if (!now.pinned && then.pinned) unpin(prefix);
  }
  for (const auto& [prefix, then] : before) {
    if (then.pinned && !kept.contains(prefix)) unpin(prefix);
  }
}

std::vector<std::string> CheckpointList::prefixes() const {
  std::vector<std::string> prefixes;
  for (const Entry& entry : entries_) prefixes.push_back(entry.prefix);
  return prefixes;
}

CheckpointState CheckpointList::state(const std::string& latest, double time) const {
  CheckpointState state{.model_checkpoint_path = latest,
                        .last_preserved_timestamp = last_preserved_,
                        .paths_marked_for_deletion = marked_for_deletion_};
  for (const Entry& entry : entries_) {
    state.all_model_checkpoint_paths.push_back(entry.prefix);
    state.all_model_checkpoint_timestamps.push_back(entry.time);
  }
  if (entries_.empty()) {
    state.all_model_checkpoint_paths = {latest};
    state.all_model_checkpoint_timestamps = {time};
  }
  return state;
}

}  // namespace longhaul

#include "longhaul/train/checkpoint_list.h"

#include <algorithm>

#include "longhaul/base/log.h"

namespace longhaul {

void CheckpointList::add(const std::string& prefix, double time) {
  if (retention_.max_to_keep <= 0) return;
  std::erase(doomed_, prefix);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.prefix == prefix; });
  entries_.push_back({prefix, time});
  while (entries_.size() > static_cast<size_t>(retention_.max_to_keep)) {
    retire(entries_.front());
    entries_.pop_front();
  }
}

void CheckpointList::retire(const Entry& entry) {
  const double interval = retention_.keep_checkpoint_every_n_hours * 3600;
  if (interval > 0 && entry.time - interval >= last_preserved_) {
    last_preserved_ = entry.time;
  } else {
    doomed_.push_back(entry.prefix);
  }
}

void CheckpointList::reset(const std::vector<std::string>& prefixes, const std::vector<double>& times) {
  entries_.clear();
  for (size_t i = 0; i < prefixes.size(); ++i) entries_.push_back({prefixes[i], times[i]});
}

void CheckpointList::set_last_preserved(double last_preserved, double now) {
  if (last_preserved <= 0) return;
  if (last_preserved > now) {
    log_warning("the clock is {:.0f} s behind the last preserved checkpoint timestamp", last_preserved - now);
  }
  last_preserved_ = std::min(last_preserved, now);
}

std::vector<std::string> CheckpointList::prefixes() const {
  std::vector<std::string> prefixes;
  for (const Entry& entry : entries_) prefixes.push_back(entry.prefix);
  return prefixes;
}

CheckpointState CheckpointList::state(const std::string& latest, double time) const {
  CheckpointState state{.model_checkpoint_path = latest, .last_preserved_timestamp = last_preserved_};
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

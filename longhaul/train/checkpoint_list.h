#pragma once

#include <deque>
#include <string>
#include <vector>

#include "longhaul/checkpoint/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

struct Retention {
  int max_to_keep = 5;  // 0: all are kept, and none is listed
  double keep_checkpoint_every_n_hours =
      10000;  // of those that fall out, one in so many hours is never deleted; 0: none
};

// Which checkpoints of a directory a Saver keeps and which it must delete. Times are seconds since 1970. One thread at
// a time.
class CheckpointList {
 public:
  CheckpointList(const Retention& retention, double now) : retention_(retention), last_preserved_(now) {}

  // The newest checkpoint; one that is listed already moves to the end. What falls out is preserved or doomed.
  void add(const std::string& prefix, double time);

  // Replaces the list. `last_preserved` is what a state file says (0: nothing); one in the future counts as now.
  void reset(const std::vector<std::string>& prefixes, const std::vector<double>& times);
  void set_last_preserved(double last_preserved, double now);

  std::vector<std::string> prefixes() const;

  // For the state file, with `latest` as the newest.
  CheckpointState state(const std::string& latest, double time) const;

  // Checkpoints to delete; they stay here until they are, so that a failed deletion is tried again.
  const std::vector<std::string>& doomed() const { return doomed_; }
  void forget_doomed(const std::string& prefix) { std::erase(doomed_, prefix); }

 private:
  struct Entry {
    std::string prefix;
    double time;
  };
  void retire(const Entry& entry);

  const Retention retention_;
  std::deque<Entry> entries_;  // oldest first
  std::vector<std::string> doomed_;
  double last_preserved_;
};

}  // namespace longhaul

#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"

namespace longhaul {

// Which of two checkpoints is better by SaveOptions::metric: the one with the smaller number (a loss), or the greater.
enum class MetricMode { kMin, kMax };

// Which checkpoints are kept for their metric.
struct BestOptions {
  int top_k = 0;                       // so many, in addition to the newest; 0: none
  MetricMode mode = MetricMode::kMin;  // kMax: for an accuracy, say
};

struct Retention {
  int max_to_keep = 5;                           // 0: all are kept, and none is listed
  double keep_checkpoint_every_n_hours = 10000;  // of those that fall out, one in n hours is kept for good; 0: none
  BestOptions best;
};

// Decides which checkpoints of a directory a Saver keeps and which it must delete. Times are seconds since 1970. One
// thread at a time.
//
//   new --newer ones come--> fallen out --> held (pinned, or one of the best) --no longer--> marked for deletion
//                                       --> preserved for good (one in n hours)
//                                       --> marked for deletion --> deleted
class CheckpointList {
 public:
  CheckpointList(const Retention& retention, double now) : retention_(retention), last_preserved_(now) {}

  // Adds the newest checkpoint; one that is already listed moves to the end. `held`, if listed, stays held even if this
  // one is of a later step.
  void add(const std::string& prefix, double time, std::optional<double> metric = std::nullopt,
           const std::string& held = "");

  // Replaces the list. Listed checkpoints are neither fallen out nor marked for deletion. If all are kept, none is
  // listed. `last_preserved` comes from a state file (0: not given); a time in the future counts as now.
  void reset(const std::vector<std::string>& prefixes, const std::vector<double>& times);
  void set_last_preserved(double last_preserved, double now);

  // Keeps it listed, in addition to the number to keep, until one of a later step is added. If it is not listed, the
  // newest of a smaller step is held instead.
  void hold(const std::string& prefix);

  std::vector<std::string> prefixes() const;

  // For the state file, with `latest` as the newest.
  CheckpointState state(const std::string& latest, double time) const;

  void pin(const std::string& prefix);
  void unpin(const std::string& prefix);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;  // the best one first; a tie goes to the later step

  // For the retention file: takes over what it says about existing checkpoints (after reset), and returns what it
  // should say. `before` is what it said when it was last adopted or written: changes since then come from another
  // process or saver and are taken over; the rest is known here. Does not mark anything for deletion; add() does. Only
  // checkpoints that once were listed are ever marked for deletion.
  void adopt(const KeptCheckpoints& kept, const KeptCheckpoints& before = {});
  const KeptCheckpoints& kept() const { return kept_; }

  // Call it for a checkpoint whose deletion a crash interrupted. Does nothing for one that is listed or held.
  void mark_for_deletion(const std::string& prefix);

  // Marks those that fell out and are no longer held; add() does so, too.
  void mark_what_is_no_longer_held();

  // Those that newer ones will push out to be deleted, oldest first: without the newest, the held, the pinned, the
  // best, and those that will be preserved. When space is short, drop() takes one before its turn: it is no longer
  // listed, and marked for deletion.
  std::vector<std::string> droppable() const;
  void drop(const std::string& prefix);

  // Checkpoints to delete; they stay here until deleted, so that a failed deletion is retried.
  const std::vector<std::string>& marked_for_deletion() const { return marked_for_deletion_; }
  void forget_marked(const std::string& prefix) { std::erase(marked_for_deletion_, prefix); }

 private:
  struct Entry {
    std::string prefix;
    double time;
  };
  bool is_listed(const std::string& prefix) const;
  bool is_pinned_or_best(const std::string& prefix) const;
  bool is_to_be_preserved(const Entry& entry, double last_preserved) const;
  void release_older_than(const std::string& prefix);
  std::deque<Entry>::iterator oldest_not_held();
  void retire_what_is_too_many();
  void retire(const Entry& entry);

  const Retention retention_;
  std::deque<Entry> entries_;   // oldest first
  std::set<std::string> held_;  // of them
  KeptCheckpoints
      kept_;  // those with a pin or a metric, listed or fallen out; and those that add() is to mark for deletion
  std::vector<std::string> marked_for_deletion_;
  double last_preserved_;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"

namespace longhaul {

// Which SaveOptions::metric is better: the smaller one (a loss), or the greater one.
enum class MetricMode { kMin, kMax };

// Which checkpoints are kept for their metric.
struct BestOptions {
  int top_k = 0;                       // the number of these, in addition to the newest; 0: none
  MetricMode mode = MetricMode::kMin;  // kMax: for an accuracy, for example
};

struct Retention {
  int max_to_keep = 5;                           // 0: all are kept, and none are listed
  double keep_checkpoint_every_n_hours = 10000;  // beyond max_to_keep, one in n hours is kept for good; 0: none
  BestOptions best;
};

// Decides which checkpoints of a directory a Saver keeps and which it must delete. A checkpoint "falls out" when newer
// ones displace it from the list. Times are in seconds since 1970. One thread at a time may call.
//
//   new --newer ones come--> fallen out --> held (pinned, or one of the best) --no longer--> marked for deletion
//                                       --> preserved for good (one in n hours)
//                                       --> marked for deletion --> deleted
class CheckpointList {
 public:
  CheckpointList(const Retention& retention, double now) : retention_(retention), last_preserved_(now) {}

  // Adds the newest checkpoint. If it is already listed, it moves to the end. `held`, if listed, stays held even if the
  // new checkpoint is of a later step.
  void add(const std::string& prefix, double time, std::optional<double> metric = std::nullopt,
           const std::string& held = "");

  // Replaces the list. Listed checkpoints have not fallen out and are not marked for deletion. If all are kept, none
  // are listed. `last_preserved` is that of a state file (0: not given); a time in the future counts as now.
  void reset(const std::vector<std::string>& prefixes, const std::vector<double>& times);
  void set_last_preserved(double last_preserved, double now);

  // Keeps a checkpoint listed, in addition to the number to keep, until one of a later step is added. If it is not
  // listed, holds the newest one of a smaller step instead.
  void hold(const std::string& prefix);

  // From now on, the newest checkpoint that is at least this many steps before the one added last stays listed too,
  // even in addition to the number to keep; and so does the one after it (without it, the oldest one), which will take
  // its place. Skipped ones (those before one of a smaller step in the list) do not count.
  void keep_behind(int64_t steps) { behind_ = steps; }

  std::vector<std::string> prefixes() const;

  // The contents for the state file, with `latest` as the newest.
  CheckpointState state(const std::string& latest, double time) const;

  void pin(const std::string& prefix);
  void unpin(const std::string& prefix);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;  // the best one first; a tie goes to the later step
  bool keeps_best() const { return retention_.best.top_k > 0; }
  bool lacks_metrics() const { return keeps_best() && best().empty(); }  // which the best are kept by

  // The metric that a reader has given an existing checkpoint. It may be one of the best from then on, even if it is
  // already marked for deletion.
  void take_metric(const std::string& prefix, double metric);

  // adopt() takes over the contents of the retention file for existing checkpoints (after reset); kept() returns its
  // new contents. `before` are the contents when the file was last adopted or written: changes since then were made by
  // another process or saver, and are taken over. adopt() marks nothing for deletion; add() does. Only checkpoints that
  // were once listed are ever marked for deletion.
  void adopt(const KeptCheckpoints& kept, const KeptCheckpoints& before = {});
  const KeptCheckpoints& kept() const { return kept_; }

  // Call it for a checkpoint whose deletion was interrupted by a crash. Does nothing if it is listed or held.
  void mark_for_deletion(const std::string& prefix);

  // Marks those that fell out and are no longer held. add() also does this.
  void mark_what_is_no_longer_held();

  // droppable() returns those that will be deleted when newer ones displace them, oldest first: all but the newest, the
  // held, the pinned, the best, and those that will be preserved. If the disk is full, drop() takes one before its
  // turn: it unlists the checkpoint and marks it for deletion.
  std::vector<std::string> droppable() const;
  void drop(const std::string& prefix);

  // The checkpoints to delete. They stay here until they are deleted, so that a failed deletion is retried.
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
  std::set<std::string> kept_behind() const;
  std::deque<Entry>::iterator oldest_not_held();
  void retire_what_is_too_many();
  void retire(const Entry& entry);

  const Retention retention_;
  std::deque<Entry> entries_;   // oldest first
  std::set<std::string> held_;  // of them
  std::optional<int64_t> behind_;
  KeptCheckpoints
      kept_;  // those with a pin or a metric, listed or fallen out; and those that add() will mark for deletion
  std::vector<std::string> marked_for_deletion_;
  double last_preserved_;
};

}  // namespace longhaul

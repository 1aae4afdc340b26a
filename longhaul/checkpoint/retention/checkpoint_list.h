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

struct Retention {
  int max_to_keep = 5;  // 0: all are kept, and none is listed
  double keep_checkpoint_every_n_hours =
      10000;  // of those that fall out, one in so many hours is never deleted; 0: none
  int save_top_k = 0;
  MetricMode metric_mode = MetricMode::kMin;
};

// Which checkpoints of a directory a Saver keeps and which it must delete. Times are seconds since 1970. One thread at
// a time.
//
//   new --newer ones come--> fallen out --> held (pinned, or one of the best) --no longer--> marked for deletion -->
//   deleted
//                                       --> preserved for good (one in n hours)
//                                       --> marked for deletion
class CheckpointList {
 public:
  CheckpointList(const Retention& retention, double now) : retention_(retention), last_preserved_(now) {}

  // The newest checkpoint; one that is listed already moves to the end. `held`, if it is listed, stays held though this
  // one be of a later step.
  void add(const std::string& prefix, double time, std::optional<double> metric = std::nullopt,
           const std::string& held = "");

  // Replaces the list. What is listed is neither fallen out nor marked for deletion. Where all are kept, none is
  // listed. `last_preserved` is what a state file says (0: nothing); one in the future counts as now.
  void reset(const std::vector<std::string>& prefixes, const std::vector<double>& times);
  void set_last_preserved(double last_preserved, double now);

  // Stays listed, beside as many others as are to be kept, until one of a later step is added. Where it is not listed,
  // the newest of a smaller step is held in its place.
  void hold(const std::string& prefix);

  std::vector<std::string> prefixes() const;

  // For the state file, with `latest` as the newest.
  CheckpointState state(const std::string& latest, double time) const;

  void pin(const std::string& prefix);
  void unpin(const std::string& prefix);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;  // the best one first; a tie goes to the later step

  // For the retention file: what it says about checkpoints that exist (after reset), and what it should say. `before`
  // is what it said when it was last adopted or written: what has changed since is another process's doing, or another
  // saver's, and counts; the rest is known here. Dooms nothing: add() does. Only checkpoints that once were listed are
  // ever marked for deletion.
  void adopt(const KeptCheckpoints& kept, const KeptCheckpoints& before = {});
  const KeptCheckpoints& kept() const { return kept_; }

  // That it was being deleted when a crash came. Nothing is done for one that is listed or held.
  void mark_for_deletion(const std::string& prefix);

  // Dooms what fell out and is held no more; add() does so, too.
  void mark_what_is_no_longer_held();

  // Those that newer ones will push out to be deleted, the oldest first: without the newest, the held, the pinned, the
  // best, and those that will be preserved. For want of room one may go before its turn: it is listed no more, and
  // marked for deletion.
  std::vector<std::string> droppable() const;
  void drop(const std::string& prefix);

  // Checkpoints to delete; they stay here until they are, so that a failed deletion is tried again.
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
  KeptCheckpoints kept_;  // those with a pin or a metric, listed or fallen out; and what add() is to mark for deletion
  std::vector<std::string> marked_for_deletion_;
  double last_preserved_;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace longhaul {

struct RunEvent;

// The failed saves of a run.
struct FailedSaves {
  int64_t in_all = 0;
  int64_t in_a_row = 0;  // since the last that worked; 0: saves work
  double since = 0;      // when the first of the row failed
  std::string error{};   // of the row's last
  bool operator==(const FailedSaves&) const = default;
};

// A run as people ask for it: when it was, how far it came, and why it ended.
struct PastRun {
  enum class End {
    kOpen,       // no end is recorded: it runs, or was killed and nobody has started another since
    kEnded,      // normally
    kFailed,     // by its own error; `why` has it
    kDisturbed,  // by an error of its surroundings
    kDied,       // of its own fatal signal
    kKilled,     // from outside, or with its machine: the next run found no end
  };

  static constexpr const char* kWhyPreempted = "preempted, to be started again";

  int64_t number = 0;           // among all runs of the directory, from 1
  double began = 0, until = 0;  // seconds since 1970; `until`: its last sign of life
  End end = End::kOpen;
  std::optional<int64_t> from_step{};  // at which it began: restored or initialised
  std::optional<int64_t> last_step{};  // the highest that it has reported
  std::optional<int64_t> saved_step{};
  int64_t saves = 0;
  int64_t lost_sessions = 0;  // interruptions that it survived
  int64_t hangs = 0;          // times that no step was made for too long
  FailedSaves failed_saves{};
  std::string host{};  // one word
  std::string why{};   // the error, the signal, or the reason of a stop; empty: none is known
  bool is_preempted() const { return end == End::kEnded && why == kWhyPreempted; }  // it asks to be started again
  bool operator==(const PastRun&) const = default;
};

// The last runs of a directory, oldest first; the last one may be under way.
class PastRuns {
 public:
  static constexpr size_t kMostRuns = 64;
  static constexpr size_t kMostWhy = 200;    // bytes
  static constexpr size_t kMostError = 500;  // of a failed save, whose cause comes last; bytes

  // Call it with each event; `number`: that of the run that the event belongs to.
  void apply(const RunEvent& event, int64_t number);

  void remember(PastRun run);                          // a further one, from a file
  void remember_hangs(int64_t number, int64_t hangs);  // of the last one, if that is its number
  void remember_failed_saves(int64_t number, FailedSaves saves);

  const std::vector<PastRun>& runs() const { return runs_; }
  bool operator==(const PastRuns&) const = default;

 private:
  std::vector<PastRun> runs_;
};

// The text of a kSaveFailed: how many saves have failed in a row, and the error of the last, in kMostError bytes. 0:
// saves work again, though no checkpoint was written, because it was there.
std::string text_of_failed_save(int64_t in_a_row, const std::string& error);
int64_t failed_in_a_row(const RunEvent& event);  // 1 if its text does not say

}  // namespace longhaul

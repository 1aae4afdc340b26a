#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace longhaul {

struct RunEvent;

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
  std::string host{};         // one word
  std::string why{};          // the error, the signal, or the reason of a stop; empty: none is known
  bool is_preempted() const { return end == End::kEnded && why == kWhyPreempted; }  // it asks to be started again
  bool operator==(const PastRun&) const = default;
};

// The last runs of a directory, oldest first; the last one may be under way.
class PastRuns {
 public:
  static constexpr size_t kMostRuns = 64;
  static constexpr size_t kMostWhy = 200;  // bytes

  // Call it with each event; `number`: that of the run that the event belongs to.
  void apply(const RunEvent& event, int64_t number);

  void remember(PastRun run);                          // a further one, from a file
  void remember_hangs(int64_t number, int64_t hangs);  // of the last one, if that is its number

  const std::vector<PastRun>& runs() const { return runs_; }
  bool operator==(const PastRuns&) const = default;

 private:
  std::vector<PastRun> runs_;
};

}  // namespace longhaul

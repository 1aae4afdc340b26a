#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace longhaul::soak {

// What a run did to what is known of the checkpoint that it was restored from.
struct RunEnd {
  std::optional<int64_t> restored;  // the step of that one; nullopt: none, or nobody knows
  bool saved_another = false;       // a newer one
  bool died = false;                // of itself: by a fatal signal, or by an error
  bool by_signal = false;           // so, and nothing else was wrong
};

// Which checkpoint the next run of a training must begin with: the newest whole one. Only if runs that were restored
// from it died of themselves, two or more of them, and saved nothing newer, it may be the one before, and so on; it
// must be if two in a row died of a signal. What ends a run from outside is never held against a checkpoint.
class ExpectedStart {
 public:
  // Newest first, of these steps of whole checkpoints. Empty where there is none.
  std::vector<int64_t> of(const std::set<int64_t>& whole) const;

  void ended(const RunEnd& run);
  void damaged();  // something was done to the files between two runs; what was known of deaths may be lost

 private:
  std::map<int64_t, int> deaths_;  // by the step that was restored
  int64_t in_a_row_of_ = -1;
  int in_a_row_ = 0;  // by a signal
};

}  // namespace longhaul::soak

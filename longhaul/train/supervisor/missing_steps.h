#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/session/session.h"

namespace longhaul {

// Warns once if a training run makes no step. A loop that runs the loss in place of train_op does not fail, but trains
// nothing, and a limit of steps never ends it.
//
// There is no warning unless steps are to be expected: the run begins at step 0, and its graph has an operation that
// counts the global step. So there is none for an evaluation, for a process that only fills queues, or for a run that
// had made its last step before. Nor is there one while a step is under way, however long the first one takes. It has
// no thread and no clock: the caller passes times and what it sees. One thread at a time.
class MissingSteps {
 public:
  explicit MissingSteps(const Output& global_step);  // an invalid one: there is never a warning

  struct Seen {
    std::optional<int64_t> step;  // absent: not known
    bool is_under_way = false;    // StepWatching::is_step_under_way()
  };
  void session_begins(Seconds now, std::optional<int64_t> step);
  void look(Seconds now, const Seen& seen);  // warns ten minutes after the begin
  void ends(Seconds now, const Seen& seen);  // warns of a run that took a minute or longer

 private:
  void look_after(Seconds time, Seconds now, const Seen& seen);

  const std::string name_, advice_;  // empty advice: nothing counts the step
  std::optional<Seconds> begin_;     // absent: nothing to expect any more
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/graph/scope.h"
#include "longhaul/train/divergence/divergence_options.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/recovery/fall_back.h"

namespace longhaul {

// A training run's way back from bad losses, for a session at a time:
//
//   made --session_begins--> training: look ... --look throws--> undone --session_begins--> training
//
// What it knows is in two places. The checkpoints have the losses of the watch, and how many rollbacks there were
// before. The journal has the rollbacks, so that a restart after a kill continues as if there was none: it restores the
// same checkpoint, makes up for the calls of on_rollback that the checkpoint lacks, and counts on.
//
// One thread at a time; savers read the values in checkpoints at any time.
class WayBack {
 public:
  struct Place {
    std::shared_ptr<RunJournal> journal{};
    Saver* saver = nullptr;
    FallBackOptions search{};      // of the directory; for which checkpoints a restart would find
    FileWriter* events = nullptr;  // null: none
  };

  explicit WayBack(DivergenceOptions options);  // throws what check_divergence() throws
  ~WayBack();
  WayBack(const WayBack&) = delete;
  WayBack& operator=(const WayBack&) = delete;

  // Adds what checkpoints have of it to the graph: "divergence/losses" and "divergence/rollbacks". Before the saver is
  // made, and if DivergenceOptions::keep_in_checkpoints. AlreadyExistsError: another one is in the graph. Without it,
  // each session begins with a new watch, and the steps in the names of checkpoints tell which rollbacks came before
  // them.
  void keep_in(const Scope& scope);

  // The session's model is ready, and was restored from this checkpoint (empty: was not); `step` is its own. Calls
  // on_rollback; nothing may be saved meanwhile. Returns whether it was called. FailedPreconditionError: there is no
  // journal, or no saver, without which there is no way back; or servers still have the model whose loss went bad.
  bool session_begins(Place place, Session& session, const std::string& restored_from, int64_t step);
  // Whether session_begins() has rollbacks to make up for.
  bool has_to_catch_up(const RunJournal* journal, const std::string& restored_from) const;

  // The loss of step `step`, the next one of the session, or the one just made. RollBackError, DivergedError: it is
  // bad. What is in the session then must not be saved, and each further call throws the same.
  void look(int64_t step, double loss);

  // The first step from `step` on that is not left out.
  int64_t next_step(int64_t step) const { return skipped_.next_step(step); }
  const DivergenceOptions& options() const { return options_; }

 private:
  int64_t known_rollbacks(const RunJournal* journal, const std::string& restored_from) const;
  [[noreturn]] void diverged(int64_t step, double loss);
  [[noreturn]] void end_training(const Rollback& rollback, const std::string& why);
  std::string what_follows(int64_t good_until) const;
  std::optional<std::string> last_good(int64_t latest) const;
  int64_t recent_rollbacks(int64_t step) const;

  const DivergenceOptions options_;
  bool is_kept_ = false;
  Place place_;
  Rollbacks skipped_;       // the journal's, when the session began
  std::exception_ptr bad_;  // what look() has thrown in this session

  struct Kept;                        // what checkpoints have
  const std::shared_ptr<Kept> kept_;  // the graph holds it, too
};

}  // namespace longhaul

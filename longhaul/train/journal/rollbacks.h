#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// A return of a training run to an earlier checkpoint, because its loss went bad (train/divergence/way_back.h). Steps
// are counted as the global step does: step 910 is made when 910 steps were made before.
struct Rollback {
  int64_t count = 0;          // which one of the training run it is, from 1 on
  int64_t diverged_step = 0;  // the first step with a bad loss
  int64_t until_step = 0;     // the step behind the last one that was made
  int64_t restored_step = 0;  // the step at which the training continues, of the checkpoint
  double loss = 0;            // the last one: NaN, infinite or too high
  bool skips = false;         // the steps from restored_step up to until_step are left out
  std::string checkpoint{};   // its name in the directory

  // For people: "rollback 1: the loss of step 910 went bad (nan); back to step 800, model.ckpt-800".
  std::string describe() const;
  std::string to_text() const;                                      // "1 910 911 800 nan 1 model.ckpt-800"
  static std::optional<Rollback> from_text(std::string_view text);  // nullopt: it is none
  bool operator==(const Rollback& other) const { return to_text() == other.to_text(); }  // with the same NaN
};

// What the journal of a directory knows of its training run's rollbacks (docs/formats/run_journal.md): the last ones,
// and which checkpoints are not to be restored any more.
//
//   open --diverged--> undone: all later checkpoints are unfit --recovered--> open: those that were refused are unfit
//
// It is under way from `diverged` until the recovered model has trained.
class Rollbacks {
 public:
  static std::string text_of(const Rollback& rollback, bool ends);

  void diverged(std::string_view text);  // text_of(); any other text is ignored
  void refused(const std::string& checkpoint);
  void recovered() { undone_after_.reset(); }  // the model was restored or initialised
  void trained() { is_under_way_ = is_under_way_ && undone_after_.has_value(); }  // a session has made or saved a step
  void saved(const std::string& checkpoint);                                      // another one of that name
  void remember(const Rollback& rollback);  // the newest; of many, the oldest are forgotten
  void remember_undone(int64_t step) { undone_after_ = step; }
  void remember_under_way() { is_under_way_ = true; }

  const std::vector<Rollback>& all() const { return all_; }  // oldest first
  int64_t count() const { return all_.empty() ? 0 : all_.back().count; }
  // Until the next recovery: no checkpoint of a later step is fit to be restored.
  const std::optional<int64_t>& undone_after() const { return undone_after_; }
  // No recovered model has trained since the loss went bad: what servers have is not what the training continues with.
  bool is_under_way() const { return is_under_way_; }
  const std::vector<std::string>& unfit() const { return unfit_; }
  bool is_unfit(const std::string& checkpoint) const;
  // The first step from `step` on that no rollback leaves out.
  int64_t next_step(int64_t step) const;
  bool operator==(const Rollbacks&) const = default;

 private:
  std::vector<Rollback> all_;
  std::optional<int64_t> undone_after_;
  bool is_under_way_ = false;
  std::vector<std::string> unfit_;
};

}  // namespace longhaul

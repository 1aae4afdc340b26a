#include "longhaul/train/checkpointing/final_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

std::optional<int64_t> step_of(const SaveTarget& target, Session& session) {
  if (!target.global_step.valid()) return std::nullopt;
  return session.run(target.global_step).item<int64_t>();
}

constexpr Seconds kLongestSave{3600};  // the last one itself waits for one that takes longer

// What the training did since its newest checkpoint.
std::string lost_steps(const std::string& newest, std::optional<int64_t> now) {
  if (newest.empty()) return "there is no earlier checkpoint, so all steps are lost";
  const std::optional<int64_t> saved = split_step(newest).step;
  const std::string what =
      now && saved ? fmt::format("steps {} to {} are lost", *saved + 1, *now) : "everything after it is lost";
  return fmt::format("the newest checkpoint is {}, and {}", newest, what);
}

// Of the previous save, without what it waited for the saver's limit, which is not that of the last one.
Seconds time_of(const SaveReport& save, double max_bytes_per_second) {
  if (max_bytes_per_second == 0) return save.total;
  return std::max(Seconds{0}, save.total - Seconds(static_cast<double>(save.bytes) / max_bytes_per_second));
}

// Why a save does not fit; empty: it does, as far as is known.
std::string too_long(const Saver& saver, Seconds left) {
  const std::optional<SaveReport> last = saver.last_report();
  if (!last || time_of(*last, saver.max_bytes_per_second()) <= left) return "";
  return fmt::format("the previous save took {:.1f} s", last->total.count());
}

}  // namespace

bool save_final_checkpoint(const SaveTarget& target, Session& session, const StopBudget& budget) {
  const bool is_idle = budget.deadline() == nullptr || target.saver.wait_until_idle(kLongestSave, budget.deadline());
  const std::optional<Seconds> limit = budget.left();
  if (!limit) {
    save_last(target, session, std::nullopt, budget.deadline());
    return true;
  }
  const Seconds left = *limit;
  const std::string newest = target.saver.last_saved();
  const std::optional<int64_t> step = step_of(target, session);
  // What was assigned since then is saved if there is time: until it is, the one before stays.
  const bool is_step_saved = step && !newest.empty() && split_step(newest).step == step;
  const std::string why_not = is_idle ? too_long(target.saver, left) : "another save is still under way";
  if (!is_step_saved && !why_not.empty()) {
    log_warning("preempted with {:.1f} s left: no last checkpoint is saved, because {}; {}", left.count(), why_not,
                lost_steps(newest, step));
    if (!is_idle) target.saver.wait_until_idle(target.attempts.last_save_timeout());  // the kill may be late
    return false;
  }
  if (is_idle) {
    save_last(target, session, std::clamp(left, Seconds{0}, target.attempts.last_save_timeout()), budget.deadline());
  } else {
    log_warning("preempted with {:.1f} s left: changes since {}, if any, are not saved, because {}", left.count(),
                newest, why_not);
  }
  return true;
}

}  // namespace longhaul

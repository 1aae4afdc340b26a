#include "longhaul/train/journal/time_breakdown.h"

#include <fmt/format.h>

#include <cmath>

namespace longhaul {
namespace {

constexpr Seconds kShortestAccount{5};  // the first steps of a run are noticed a moment late

double percent(Seconds part, Seconds whole) {
  return whole > Seconds{0} ? 100 * (part / whole) : 0;
}

std::string duration_text(Seconds duration) {
  const auto seconds = static_cast<int64_t>(std::llround(duration.count()));
  if (seconds < 60) return fmt::format("{:.1f} s", duration.count());
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  const int64_t minutes = seconds / 60;
  if (minutes < 24 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} d {} h", minutes / (24 * 60), minutes / 60 % 24);
}

}  // namespace

double TimeBreakdown::goodput() const {
  return total() > Seconds{0} ? percent(training, total()) : 100;
}

std::string describe(const TimeBreakdown& breakdown, int64_t runs, Seconds unsaved) {
  const auto share = [&](Seconds part) { return percent(part, breakdown.total()); };
  const std::string all = fmt::format("{} in {} run{}", duration_text(breakdown.total()), runs, runs == 1 ? "" : "s");
  if (breakdown.total() < kShortestAccount) return all + ", too short to measure goodput";
  const std::string lost =
      unsaved > Seconds{0} ? fmt::format("{:.1f} % in no checkpoint, ", share(unsaved)) : std::string();
  return fmt::format(
      "{}: {:.1f} % goodput, {}{:.1f} % redone, {:.1f} % saving, {:.1f} % restoring, {:.1f} % initialising, {:.1f} % "
      "stopped",
      all, share(breakdown.training - unsaved), lost, share(breakdown.redone), share(breakdown.saving),
      share(breakdown.restoring), share(breakdown.initialising), share(breakdown.stopped));
}

}  // namespace longhaul

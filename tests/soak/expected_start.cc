#include "tests/soak/expected_start.h"

namespace longhaul::soak {

constexpr int kMostDeaths = 2;

std::vector<int64_t> ExpectedStart::of(const std::set<int64_t>& whole) const {
  std::vector<int64_t> steps;
  for (auto step = whole.rbegin(); step != whole.rend(); ++step) {
    const bool is_last = std::next(step) == whole.rend();
    const auto deaths = deaths_.find(*step);
    const bool is_condemned = *step == in_a_row_of_ && in_a_row_ >= kMostDeaths;
    if (is_last || !is_condemned) steps.push_back(*step);
    if (deaths == deaths_.end() || deaths->second < kMostDeaths) break;
  }
  return steps;
}

void ExpectedStart::ended(const RunEnd& run) {
  const int64_t restored = run.restored.value_or(-1);
  if (!run.by_signal || run.saved_another || restored != in_a_row_of_) in_a_row_ = 0;
  in_a_row_of_ = restored;
  if (run.saved_another) deaths_.clear();
  if (run.died && !run.saved_another && run.restored) ++deaths_[restored];
  if (run.by_signal && !run.saved_another) ++in_a_row_;
}

void ExpectedStart::damaged() {
  in_a_row_ = 0;
}

}  // namespace longhaul::soak

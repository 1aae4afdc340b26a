#include "longhaul/train/journal/short_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace longhaul {
namespace {

constexpr int64_t kFewestRuns = 3;
constexpr double kAboutAsShort = 2;  // times as long as the longest, at most

std::string number_of(const std::optional<int64_t>& step) {
  return step ? std::to_string(*step) : "-";
}

// Takes the numbers off a text that commas separate.
class Numbers {
 public:
  explicit Numbers(std::string_view rest) : rest_(rest) {}

  double number() {
    const std::string_view text = next();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    is_right_ = is_right_ && error == std::errc{} && end == text.data() + text.size() && value >= 0 && value < 1e15;
    return is_right_ ? value : 0;
  }
  int64_t count() { return static_cast<int64_t>(number()); }
  Seconds seconds() { return Seconds{number()}; }
  bool flag() { return number() != 0; }
  std::optional<int64_t> step() {
    if (!rest_.starts_with("-")) return count();
    next();
    return std::nullopt;
  }
  bool are_all_right() const { return is_right_ && rest_.empty(); }

 private:
  std::string_view next() {
    const std::string_view text = rest_.substr(0, rest_.find(','));
    rest_.remove_prefix(std::min(rest_.size(), text.size() + 1));
    return text;
  }

  std::string_view rest_;
  bool is_right_ = true;
};

}  // namespace

void ShortRuns::recovered(double time, std::optional<int64_t> step) {
  run_ = {.recovered = time, .last = time, .step = step};
}

// The first save of a run that was initialised is of the step that it begins with.
void ShortRuns::saved(std::optional<int64_t> step) {
  if (step && !run_.step) {
    run_.step = step;
  } else if (!step || *step > *run_.step) {
    run_.has_saved = true;
  }
}

void ShortRuns::ended() {
  const double first_step = std::exchange(run_.first_step, 0);
  const Seconds lasted{std::max(0.0, run_.last - run_.recovered)};
  if (first_step <= 0 || (!run_.has_saved && lasted < kShortestFirstInterval)) return;
  const Seconds until_first_step{std::clamp(first_step - run_.recovered, 0.0, lasted.count())};
  const bool is_of_the_pattern = is_pattern_ && lasted < kAboutAsShort * longest_;
  if (!run_.has_saved) {
    count(lasted, (until_first_step + lasted) / 2);
  } else if (is_of_the_pattern) {
    count_ = 0;
  } else {
    *this = ShortRuns();
  }
}

void ShortRuns::count(Seconds lasted, Seconds middle) {
  const bool begins_elsewhere = count_ > 0 && step_ != run_.step;
  if (begins_elsewhere) {
    count_ = 0;
    is_pattern_ = false;
  }
  const bool is_first = count_ == 0 && !is_pattern_;
  shortest_ = is_first ? lasted : std::min(shortest_, lasted);
  longest_ = is_first ? lasted : std::max(longest_, lasted);
  middle_ = is_first ? middle : std::min(middle_, middle);
  step_ = run_.step;
  ++count_;
  is_pattern_ = is_pattern_ || count_ >= kFewestRuns;
}

bool ShortRuns::are_a_pattern() const {
  return is_pattern_ && (count_ == 0 || step_ == run_.step);
}

std::string ShortRuns::to_text() const {
  if (*this == ShortRuns()) return "-";
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}", count_, number_of(step_), shortest_.count(), longest_.count(),
                     middle_.count(), is_pattern_ ? 1 : 0, run_.recovered, run_.last, run_.first_step,
                     number_of(run_.step), run_.has_saved ? 1 : 0);
}

ShortRuns ShortRuns::from_text(std::string_view text) {
  Numbers numbers(text);
  ShortRuns runs;
  runs.count_ = numbers.count();
  runs.step_ = numbers.step();
  runs.shortest_ = numbers.seconds();
  runs.longest_ = numbers.seconds();
  runs.middle_ = numbers.seconds();
  runs.is_pattern_ = numbers.flag();
  runs.run_.recovered = numbers.number();
  runs.run_.last = numbers.number();
  runs.run_.first_step = numbers.number();
  runs.run_.step = numbers.step();
  runs.run_.has_saved = numbers.flag();
  return numbers.are_all_right() ? runs : ShortRuns();
}

}  // namespace longhaul

#include "longhaul/train/journal/rollbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace longhaul {
namespace {

constexpr size_t kMostRollbacks = 64, kMostUnfit = 256, kMostName = 512;
constexpr int64_t kMostSteps = int64_t{1} << 62;
constexpr std::string_view kBack = "back ", kEnd = "end ";

// Takes a word off the text; false: there is none of that type.
template <typename Number>
bool take(std::string_view& text, Number& number) {
  const size_t end = std::min(text.find(' '), text.size());
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, number);
  if (error != std::errc{} || stop != text.data() + end) return false;
  text.remove_prefix(std::min(text.size(), end + 1));
  return true;
}

}  // namespace

std::string Rollback::to_text() const {
  return fmt::format("{} {} {} {} {} {} {}", count, diverged_step, until_step, restored_step, loss, skips ? 1 : 0,
                     checkpoint);
}

std::string Rollback::describe() const {
  return fmt::format("rollback {}: the loss of step {} went bad ({:g}); back to step {}, {}", count, diverged_step,
                     loss, restored_step, checkpoint);
}

std::optional<Rollback> Rollback::from_text(std::string_view text) {
  Rollback rollback;
  int skips = 0;
  const bool is_whole = take(text, rollback.count) && take(text, rollback.diverged_step) &&
                        take(text, rollback.until_step) && take(text, rollback.restored_step) &&
                        take(text, rollback.loss) && take(text, skips);
  const bool is_sane = rollback.count > 0 && rollback.count < kMostSteps && rollback.restored_step >= 0 &&
                       rollback.restored_step <= rollback.diverged_step &&
                       rollback.diverged_step < rollback.until_step && rollback.until_step < kMostSteps &&
                       (skips == 0 || skips == 1) && text.size() <= kMostName;
  if (!is_whole || !is_sane) return std::nullopt;
  rollback.skips = skips == 1;
  rollback.checkpoint = std::string(text);
  return rollback;
}

std::string Rollbacks::text_of(const Rollback& rollback, bool ends) {
  return fmt::format("{}{}", ends ? kEnd : kBack, rollback.to_text());
}

void Rollbacks::diverged(std::string_view text) {
  const bool goes_back = text.starts_with(kBack);
  if (!goes_back && !text.starts_with(kEnd)) return;
  text.remove_prefix(goes_back ? kBack.size() : kEnd.size());
  const std::optional<Rollback> rollback = Rollback::from_text(text);
  if (!rollback) return;
  if (goes_back) remember(*rollback);
  undone_after_ = rollback->restored_step;
  is_under_way_ = true;
}

void Rollbacks::refused(const std::string& checkpoint) {
  if (is_unfit(checkpoint)) return;
  if (unfit_.size() == kMostUnfit) unfit_.erase(unfit_.begin());
  unfit_.push_back(checkpoint);
}

void Rollbacks::saved(const std::string& checkpoint) {
  if (!undone_after_) std::erase(unfit_, checkpoint);
  trained();
}

void Rollbacks::remember(const Rollback& rollback) {
  if (all_.size() == kMostRollbacks) all_.erase(all_.begin());
  all_.push_back(rollback);
}

bool Rollbacks::is_unfit(const std::string& checkpoint) const {
  return std::find(unfit_.begin(), unfit_.end(), checkpoint) != unfit_.end();
}

int64_t Rollbacks::next_step(int64_t step) const {
  const auto leaves_out = [&](const Rollback& rollback) {
    return rollback.skips && step >= rollback.restored_step && step < rollback.until_step;
  };
  for (auto found = std::find_if(all_.begin(), all_.end(), leaves_out); found != all_.end();
       found = std::find_if(all_.begin(), all_.end(), leaves_out)) {
    step = found->until_step;
  }
  return step;
}

}  // namespace longhaul

#include "longhaul/train/hangs/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/events/summary.h"
#include "longhaul/stacks/thread_stacks.h"

namespace longhaul {
namespace {

std::string time_text(Seconds time) {
  if (time < Seconds{120}) return fmt::format("{:.3g} s", time.count());
  return time < Seconds{7200} ? fmt::format("{:.3g} min", time.count() / 60)
                              : fmt::format("{:.3g} h", time.count() / 3600);
}

std::optional<int64_t> newest_step(const HangRecords& records) {
  return records.journal ? records.journal->history().sums().step : std::nullopt;
}

std::string what_hangs(const SeenHang& hang) {
  const std::string steps = hang.median_step > Seconds{0}
                                ? fmt::format("the median step took {}", time_text(hang.median_step))
                                : "none was seen before";
  return fmt::format("no step for {} (limit {}; {})", time_text(hang.without_step), time_text(hang.limit), steps);
}

// "train waits for an element of the queue fifo_queue": of the first thread that has such a wait and is no service.
std::string first_wait(const ThreadStacks& stacks) {
  const auto found = std::find_if(stacks.threads.begin(), stacks.threads.end(), [](const ThreadStack& thread) {
    return !thread.waits_for.empty() && !thread.name.starts_with("lh-");
  });
  return found == stacks.threads.end() ? "" : fmt::format("; {} waits for {}", found->name, found->waits_for);
}

// A part that fails is no reason to leave out the others.
template <typename Part>
void try_to(const char* what, const Part& part) {
  try {
    part();
  } catch (const std::exception& error) {
    log_error("the training hangs, and {}: {}", what, error.what());
  }
}

}  // namespace

void report_hang(const SeenHang& hang, const HangRecords& records) {
  const std::optional<int64_t> step = newest_step(records);
  const std::string what = fmt::format("the training {}hangs{}: {}", hang.is_new ? "" : "still ",
                                       step ? fmt::format(" at step {} or soon after", *step) : "", what_hangs(hang));
  ThreadStacks stacks;
  std::string text;
  try_to("its threads cannot be listed", [&] {
    stacks = stacks_of_threads();
    text = describe(stacks);
  });
  log_error("{}. Where its threads are:\n{}", what, text);
  if (records.journal && hang.is_new) {
    try_to("the journal cannot say so", [&] { records.journal->hung(what_hangs(hang) + first_wait(stacks)); });
  }
  if (records.writer) {
    try_to("the events cannot say so", [&] {
      const std::string whole = fmt::format("{}\n\n```\n{}```\n", what, text);
      records.writer->add_summary(text_summary(kHangTag, whole), step.value_or(0));
      records.writer->flush();
    });
  }
}

void report_end_of_hang(Seconds lasted) {
  log_warning("the training continues, after it hung for {}", time_text(lasted));
}

void record_end_by_hang(const SeenHang& hang, const HangRecords& records, const std::string& how) {
  const std::string why = fmt::format("the training hung: {}", what_hangs(hang));
  log_error("{}. The process ends {} (HangOptions::kill_after)", why, how);
  if (records.journal) {
    records.journal->ended(std::make_exception_ptr(DeadlineExceededError(why)), /*is_disturbed=*/true);
  }
}

}  // namespace longhaul

#include "longhaul/train/journal/past_runs.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "longhaul/train/journal/run_history.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;
using End = PastRun::End;

// "train-3" of "process 4711 started 81 boot 6e0c host train-3"; a word in any case.
std::string host_of(const std::string& process) {
  constexpr std::string_view kMark = " host ";
  const size_t at = process.rfind(kMark);
  std::string host = at == process.npos ? "" : process.substr(at + kMark.size(), 64);
  std::replace(host.begin(), host.end(), ' ', '_');
  return host;
}

// On one line, and not too long.
std::string in_short(const std::string& why) {
  std::string text = why.substr(0, PastRuns::kMostWhy);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// On one line, with both ends of a long one.
std::string with_both_ends(const std::string& error) {
  constexpr std::string_view kGap = " ... ";
  constexpr size_t kFirst = PastRuns::kMostWhy, kLast = PastRuns::kMostError - kFirst - kGap.size();
  std::string text = error;
  if (text.size() > PastRuns::kMostError) text.replace(kFirst, text.size() - kFirst - kLast, kGap);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void end_row(FailedSaves& saves) {
  saves = {.in_all = saves.in_all};
}

// Of a row not every failure is in the file, but each line has the number of all so far.
void fail(FailedSaves& saves, const RunEvent& event) {
  const int64_t in_a_row = failed_in_a_row(event);
  if (in_a_row <= saves.in_a_row) end_row(saves);
  if (in_a_row == 0) return;
  if (saves.in_a_row == 0) saves.since = event.time;
  saves.in_all += in_a_row - saves.in_a_row;
  saves.in_a_row = in_a_row;
  const size_t error = event.text.find(' ');
  saves.error = error == event.text.npos ? "" : with_both_ends(event.text.substr(error + 1));
}

void end(PastRun& run, End how, const std::string& why) {
  run.end = how;
  if (!why.empty()) run.why = in_short(why);
}

}  // namespace

void PastRuns::remember(PastRun run) {
  if (runs_.size() == kMostRuns) runs_.erase(runs_.begin());
  runs_.push_back(std::move(run));
}

void PastRuns::remember_hangs(int64_t number, int64_t hangs) {
  if (!runs_.empty() && runs_.back().number == number) runs_.back().hangs = hangs;
}

void PastRuns::remember_failed_saves(int64_t number, FailedSaves saves) {
  if (!runs_.empty() && runs_.back().number == number) runs_.back().failed_saves = std::move(saves);
}

void PastRuns::apply(const RunEvent& event, int64_t number) {
  if (event.kind == Kind::kBegan) {
    if (!runs_.empty() && runs_.back().end == End::kOpen) runs_.back().end = End::kKilled;
    remember({.number = number, .began = event.time, .until = event.time, .host = host_of(event.text)});
    return;
  }
  // Of a run whose beginning nobody knows, or that has ended.
  if (runs_.empty() || runs_.back().end != End::kOpen || runs_.back().number != number) return;
  PastRun& run = runs_.back();
  run.until = std::max(run.until, event.time);
  if (event.step) run.last_step = std::max(event.step, run.last_step);
  switch (event.kind) {
    case Kind::kRestored:
      if (!run.from_step) run.from_step = event.step;
      break;
    case Kind::kInitialised:
      if (!run.from_step) run.from_step = event.step.value_or(0);
      break;
    case Kind::kSaved:
      ++run.saves;
      end_row(run.failed_saves);
      run.saved_step = std::max(event.step, run.saved_step);
      break;
    case Kind::kSaveFailed: fail(run.failed_saves, event); break;
    case Kind::kInterrupted: ++run.lost_sessions; break;
    case Kind::kHung: ++run.hangs; break;
    case Kind::kStopRequested:
      if (event.text != kStopText) run.why = in_short(event.text);
      break;
    case Kind::kEnded: return end(run, End::kEnded, event.text == kPreemptedText ? PastRun::kWhyPreempted : "");
    case Kind::kFailed: return end(run, End::kFailed, event.text);
    case Kind::kDisturbed: return end(run, End::kDisturbed, event.text);
    case Kind::kDied: return end(run, End::kDied, event.text);
    default: break;
  }
}

std::string text_of_failed_save(int64_t in_a_row, const std::string& error) {
  return std::to_string(in_a_row) + " " + with_both_ends(error);
}

int64_t failed_in_a_row(const RunEvent& event) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t number = 1;
  const char* const end = event.text.data() + event.text.size();
  const auto [rest, error] = std::from_chars(event.text.data(), end, number);
  const bool is_number = error == std::errc{} && (rest == end || *rest == ' ') && number >= 0 && number <= kMost;
  return is_number ? number : 1;
}

}  // namespace longhaul

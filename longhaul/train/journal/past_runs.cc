#include "longhaul/train/journal/past_runs.h"

#include <algorithm>
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
      run.saved_step = std::max(event.step, run.saved_step);
      break;
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

}  // namespace longhaul

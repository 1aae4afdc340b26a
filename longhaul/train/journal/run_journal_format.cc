#include "longhaul/train/journal/run_journal_format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;
using Phase = RunHistory::Phase;

constexpr std::string_view kFirstLine = "longhaul run journal 1";
constexpr std::string_view kSums = "sums", kDeaths = "deaths", kUncounted = "uncounted", kRun = "run", kHangs = "hangs",
                           kFailedSaves = "failed_saves", kUnsaved = "unsaved", kNothing = "-";
constexpr std::string_view kRollback = "rollback", kUndone = "undone", kUnfit = "unfit",
                           kUnderWay = "goes_back";     // Rollbacks
constexpr std::string_view kKillsOfBefore = "crashed";  // of versions that counted kills too, which say nothing
constexpr size_t kChecksumDigits = 8;
constexpr size_t kMostText = 1024;            // bytes
constexpr double kLatestTime = 253402300799;  // the end of the year 9999
constexpr double kMostSeconds = 1e15;
constexpr int64_t kMostCount = int64_t{1} << 62;

constexpr std::array<std::pair<Kind, std::string_view>, 18> kKinds{{{Kind::kBegan, "began"},
                                                                    {Kind::kRestoring, "restoring"},
                                                                    {Kind::kRestored, "restored"},
                                                                    {Kind::kInitialised, "initialised"},
                                                                    {Kind::kFound, "found"},
                                                                    {Kind::kTraining, "training"},
                                                                    {Kind::kMark, "mark"},
                                                                    {Kind::kSaved, "saved"},
                                                                    {Kind::kSaveFailed, "save_failed"},
                                                                    {Kind::kInterrupted, "interrupted"},
                                                                    {Kind::kHung, "hung"},
                                                                    {Kind::kDiverged, "diverged"},
                                                                    {Kind::kRefused, "refused"},
                                                                    {Kind::kStopRequested, "stop"},
                                                                    {Kind::kEnded, "ended"},
                                                                    {Kind::kFailed, "failed"},
                                                                    {Kind::kDisturbed, "disturbed"},
                                                                    {Kind::kDied, "died"}}};
constexpr std::array<std::pair<Phase, std::string_view>, 5> kPhases{{{Phase::kStopped, "stopped"},
                                                                     {Phase::kStarting, "starting"},
                                                                     {Phase::kRestoring, "restoring"},
                                                                     {Phase::kTraining, "training"},
                                                                     {Phase::kStopping, "stopping"}}};

constexpr std::array<std::pair<PastRun::End, std::string_view>, 6> kEnds{{{PastRun::End::kOpen, "open"},
                                                                          {PastRun::End::kEnded, "ended"},
                                                                          {PastRun::End::kFailed, "failed"},
                                                                          {PastRun::End::kDisturbed, "disturbed"},
                                                                          {PastRun::End::kDied, "died"},
                                                                          {PastRun::End::kKilled, "killed"}}};

template <typename Names, typename Value>
std::string_view name_of(const Names& names, Value value) {
  for (const auto& [of, name] : names) {
    if (of == value) return name;
  }
  throw InternalError("an enum value has no name");
}

// On one line, and not longer than a line may be.
std::string one_line(std::string text) {
  if (text.size() > kMostText) text.resize(kMostText);
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

std::string step_text(const std::optional<int64_t>& step) {
  return step ? std::to_string(*step) : std::string(kNothing);
}

std::string checked(const std::string& line) {
  return fmt::format("{:08x} {}\n", crc32c(line), line);
}

// A line that is no line of a journal.
struct BadLine {};

// Takes the words off a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    if (word.empty()) throw BadLine{};
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    return word;
  }
  template <typename Number>
  Number number(Number most) {
    const std::string_view text = word();
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc{} && end == text.data() + text.size();
    if (!is_whole || !(value >= 0 && value <= most)) throw BadLine{};
    return value;
  }
  double time() { return number(kLatestTime); }
  Seconds seconds() { return Seconds{number(kMostSeconds)}; }
  int64_t count() { return number(kMostCount); }
  bool flag() { return number(int64_t{1}) == 1; }
  std::optional<int64_t> step() {
    if (rest_.starts_with(kNothing) && (rest_.size() == 1 || rest_[1] == ' ')) return word(), std::nullopt;
    return count();
  }
  std::optional<Seconds> seconds_if_any() {
    if (rest_.starts_with(kNothing)) return word(), std::nullopt;
    return seconds();
  }
  template <typename Names>
  auto value_of(const Names& names) {
    const std::string_view text = word();
    for (const auto& [value, name] : names) {
      if (name == text) return value;
    }
    throw BadLine{};
  }
  std::string rest() {
    if (rest_.size() > kMostText) throw BadLine{};
    return std::string(std::exchange(rest_, {}));
  }
  std::string_view next() const { return rest_.substr(0, rest_.find(' ')); }

 private:
  std::string_view rest_;
};

RunEvent parse_event(Words& words) {
  RunEvent event;
  event.kind = words.value_of(kKinds);
  event.time = words.time();
  event.step = words.step();
  if (event.kind == Kind::kSaved) {
    event.stalled = words.seconds();
    event.lasted = words.seconds();
    event.cost = words.seconds();
  }
  event.text = words.rest();
  return event;
}

std::string format_sums(const RunHistory::Sums& sums) {
  const TimeBreakdown& breakdown = sums.breakdown;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} 0 {} {}", kSums, name_of(kPhases, sums.phase),
                     sums.until, step_text(sums.step), step_text(sums.highest_step), sums.runs, sums.interruptions,
                     sums.save_cost ? fmt::format("{}", sums.save_cost->count()) : std::string(kNothing),
                     breakdown.training.count(), breakdown.redone.count(), breakdown.saving.count(),
                     breakdown.restoring.count(), breakdown.initialising.count(), breakdown.stopped.count(),
                     sums.has_saved ? 1 : 0, sums.stop_requested ? 1 : 0, sums.short_runs.to_text(),
                     step_text(sums.restored_step), one_line(sums.restored));
}

RunHistory::Sums parse_sums(Words& words) {
  words.word();
  RunHistory::Sums sums;
  sums.phase = words.value_of(kPhases);
  sums.until = words.time();
  sums.step = words.step();
  sums.highest_step = words.step();
  sums.runs = words.count();
  sums.interruptions = words.count();
  sums.save_cost = words.seconds_if_any();
  TimeBreakdown& breakdown = sums.breakdown;
  for (Seconds* part : {&breakdown.training, &breakdown.redone, &breakdown.saving, &breakdown.restoring,
                        &breakdown.initialising, &breakdown.stopped}) {
    *part = words.seconds();
  }
  sums.has_saved = words.flag();
  sums.stop_requested = words.flag();
  sums.short_runs = ShortRuns::from_text(words.word());
  words.count();
  sums.restored_step = words.step();
  sums.restored = words.rest();
  return sums;
}

Uncounted parse_uncounted(Words& words) {
  words.word();
  Uncounted uncounted;
  uncounted.time = words.seconds();
  uncounted.training = words.seconds();
  uncounted.after = words.step();
  return uncounted;
}

std::string format_run(const PastRun& run) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}{}{}", kRun, run.number, run.began, run.until,
                     name_of(kEnds, run.end), step_text(run.from_step), step_text(run.last_step),
                     step_text(run.saved_step), run.saves, run.lost_sessions, run.host.empty() ? kNothing : run.host,
                     run.why.empty() ? "" : " ", one_line(run.why));
}

PastRun parse_run(Words& words) {
  words.word();
  PastRun run;
  run.number = words.count();
  run.began = words.time();
  run.until = words.time();
  run.end = words.value_of(kEnds);
  run.from_step = words.step();
  run.last_step = words.step();
  run.saved_step = words.step();
  run.saves = words.count();
  run.lost_sessions = words.count();
  run.host = words.word();
  if (run.host == kNothing) run.host.clear();
  run.why = words.rest();
  return run;
}

std::string format_failed_saves(const PastRun& run) {
  const FailedSaves& saves = run.failed_saves;
  return fmt::format("{} {} {} {} {}{}{}", kFailedSaves, run.number, saves.in_all, saves.in_a_row, saves.since,
                     saves.error.empty() ? "" : " ", one_line(saves.error));
}

void apply_failed_saves(Words& words, RunHistory& history) {
  words.word();
  const int64_t run = words.count();
  FailedSaves saves;
  saves.in_all = words.count();
  saves.in_a_row = words.count();
  saves.since = words.time();
  saves.error = words.rest();
  history.remember_failed_saves(run, std::move(saves));
}

void apply_unsaved(Words& words, RunHistory& history) {
  words.word();
  const Seconds time = words.seconds();
  const std::optional<int64_t> step = words.step();
  const bool has_more = !words.next().empty();
  const Seconds at_stake = has_more ? words.seconds() : Seconds{0};
  const std::optional<int64_t> since = has_more ? words.step() : step;
  history.remember_unsaved(UnsavedTime(time, step));
  history.remember_at_stake(TimeAtStake(at_stake, since));
}

void apply_rollbacks(Words& words, RunHistory& history) {
  Rollbacks rollbacks = history.rollbacks();
  const std::string_view kind = words.word();
  if (kind == kUndone) {
    rollbacks.remember_undone(words.count());
  } else if (kind == kUnderWay) {
    rollbacks.remember_under_way();
  } else if (kind == kUnfit) {
    rollbacks.refused(words.rest());
  } else {
    const std::optional<Rollback> rollback = Rollback::from_text(words.rest());
    if (!rollback) throw BadLine{};
    rollbacks.remember(*rollback);
  }
  history.remember_rollbacks(std::move(rollbacks));
}

std::string format_rollbacks(const Rollbacks& rollbacks) {
  std::string text;
  for (const Rollback& rollback : rollbacks.all())
    text += checked(fmt::format("{} {}", kRollback, one_line(rollback.to_text())));
  if (rollbacks.undone_after()) text += checked(fmt::format("{} {}", kUndone, *rollbacks.undone_after()));
  if (rollbacks.is_under_way()) text += checked(std::string(kUnderWay));
  for (const std::string& checkpoint : rollbacks.unfit())
    text += checked(fmt::format("{} {}", kUnfit, one_line(checkpoint)));
  return text;
}

// The line's words, if its checksum is right.
Words checked_words(std::string_view line) {
  if (line.size() <= kChecksumDigits || line[kChecksumDigits] != ' ') throw BadLine{};
  uint32_t checksum = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + kChecksumDigits, checksum, 16);
  line.remove_prefix(kChecksumDigits + 1);
  if (error != std::errc{} || *end != ' ' || checksum != crc32c(line)) throw BadLine{};
  return Words(line);
}

void apply_line(std::string_view line, ParsedJournal& parsed) {
  RunHistory& history = parsed.history;
  Words words = checked_words(line);
  if (words.next() == kSums) {
    history = RunHistory(parse_sums(words));
    parsed.last.reset();
  } else if (words.next() == kUncounted) {
    history.remember_uncounted(parse_uncounted(words));
  } else if (words.next() == kDeaths) {
    words.word();
    const int64_t count = words.count();
    history.remember_crashes({words.rest(), count});
  } else if (words.next() == kRun) {
    history.remember_run(parse_run(words));
  } else if (words.next() == kHangs) {
    words.word();
    const int64_t run = words.count();
    history.remember_hangs(run, words.count());
  } else if (words.next() == kFailedSaves) {
    apply_failed_saves(words, history);
  } else if (words.next() == kUnsaved) {
    apply_unsaved(words, history);
  } else if (words.next() == kRollback || words.next() == kUndone || words.next() == kUnfit ||
             words.next() == kUnderWay) {
    apply_rollbacks(words, history);
  } else if (words.next() != kKillsOfBefore) {
    parsed.last = parse_event(words);
    history.apply(*parsed.last);
  }
}

}  // namespace

std::string format_run_event(const RunEvent& event) {
  std::string line = fmt::format("{} {:.3f} {}", name_of(kKinds, event.kind), event.time, step_text(event.step));
  if (event.kind == Kind::kSaved) {
    line += fmt::format(" {:.6f} {:.6f} {:.6f}", event.stalled.count(), event.lasted.count(), event.cost.count());
  }
  if (!event.text.empty()) line += " " + one_line(event.text);
  return checked(line);
}

std::string format_run_history(const RunHistory& history) {
  std::string text = fmt::format("{}\n", kFirstLine) + checked(format_sums(history.sums()));
  if (const Uncounted& uncounted = history.uncounted(); uncounted.time > Seconds{0}) {
    text += checked(fmt::format("{} {} {} {}", kUncounted, uncounted.time.count(), uncounted.training.count(),
                                step_text(uncounted.after)));
  }
  const UnsavedTime& unsaved = history.unsaved();
  const TimeAtStake& at_stake = history.at_stake();
  if (unsaved != UnsavedTime{} || at_stake != TimeAtStake{}) {
    text += checked(fmt::format("{} {} {} {} {}", kUnsaved, unsaved.time().count(), step_text(unsaved.saved_step()),
                                at_stake.time().count(), step_text(at_stake.saved_step())));
  }
  for (const RunHistory::Crashes& crashes : history.sums().crashes) {
    text += checked(fmt::format("{} {} {}", kDeaths, crashes.count, one_line(crashes.checkpoint)));
  }
  text += format_rollbacks(history.rollbacks());
  for (const PastRun& run : history.runs()) {
    text += checked(format_run(run));
    if (run.hangs > 0) text += checked(fmt::format("{} {} {}", kHangs, run.number, run.hangs));
    if (run.failed_saves != FailedSaves{}) text += checked(format_failed_saves(run));
  }
  return text;
}

namespace {

// Calls use() with each line that is whole, but the first, and bad() for each that it throws at.
template <typename Use, typename Bad>
void for_each_line(std::string_view text, const Use& use, const Bad& bad) {
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line == kFirstLine) continue;
    try {
      use(line);
    } catch (const BadLine&) {
      bad();
    }
  }
}

}  // namespace

ParsedJournal parse_run_journal(std::string_view text) {
  ParsedJournal parsed;
  const auto apply = [&](std::string_view line) {
    apply_line(line, parsed);
    ++parsed.lines;
  };
  for_each_line(text, apply, [&] { ++parsed.damaged_lines; });
  return parsed;
}

std::vector<RunEvent> events_in_run_journal(std::string_view text) {
  std::vector<RunEvent> events;
  const auto add = [&](std::string_view line) {
    Words words = checked_words(line);
    if (words.next() == kSums) return events.clear();
    for (const std::string_view other : {kUncounted, kUnsaved, kDeaths, kRun, kHangs, kFailedSaves, kRollback, kUndone,
                                         kUnfit, kUnderWay, kKillsOfBefore}) {
      if (words.next() == other) return;
    }
    events.push_back(parse_event(words));
    if (events.back().kind == Kind::kBegan) events.erase(events.begin(), events.end() - 1);
  };
  for_each_line(text, add, [] {});
  return events;
}

std::string_view name_of_end(PastRun::End end) {
  return name_of(kEnds, end);
}

}  // namespace longhaul

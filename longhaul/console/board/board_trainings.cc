// How a training stands and went, its checkpoints, and what differs between the options of several.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/console/board/board_answers.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/query_values.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/console/text/report.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/trainings/run_listing.h"
#include "longhaul/console/trainings/training_records.h"
#include "longhaul/console/trainings/training_status.h"
#include "longhaul/train/saved_state/environment_record.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostEvents = 200;  // of the newest run, without its marks
constexpr size_t kMostOptions = 500;

const char* name_of(RunEvent::Kind kind) {
  using Kind = RunEvent::Kind;
  switch (kind) {
    case Kind::kBegan: return "began";
    case Kind::kRestoring: return "restoring";
    case Kind::kRestored: return "restored";
    case Kind::kInitialised: return "initialised";
    case Kind::kFound: return "found the model";
    case Kind::kTraining: return "training";
    case Kind::kMark: return "mark";
    case Kind::kSaved: return "saved";
    case Kind::kSaveFailed: return "save failed";
    case Kind::kInterrupted: return "interrupted";
    case Kind::kHung: return "hung";
    case Kind::kDiverged: return "diverged";
    case Kind::kRefused: return "refused a checkpoint";
    case Kind::kStopRequested: return "stop requested";
    case Kind::kEnded: return "ended";
    case Kind::kFailed: return "failed";
    case Kind::kDisturbed: return "disturbed";
    case Kind::kDied: return "died";
  }
  return "";
}

Json events_json(const std::vector<RunEvent>& events) {
  Json json = Json::array();
  for (auto event = events.rbegin(); event != events.rend() && json.size() < kMostEvents; ++event) {
    if (event->kind == RunEvent::Kind::kMark) continue;
    json.push_back({{"time", event->time},
                    {"step", json_or_null(event->step)},
                    {"what", name_of(event->kind)},
                    {"text", shown(event->text, 300)}});
  }
  return json;
}

using Options = std::map<std::string, std::string>;

// The state of the watch for NaN, which is recorded at the same place.
bool is_option(const std::string& name) {
  static const std::set<std::string> kOthers{"nan", "new nan", "last without new nan"};
  return !kOthers.contains(name);
}

struct FoundOptions {
  Options options{};
  std::string source{};   // the checkpoint whose meta graph has them; empty: none has
  std::string problem{};  // why they could not be read
};

// Of the newest checkpoint that has some.
FoundOptions options_of(FileSystem& files, const std::string& directory) {
  FoundOptions found;
  std::vector<ListedCheckpoint> checkpoints = checkpoints_in(files, directory);
  for (auto each = checkpoints.rbegin(); each != checkpoints.rend() && found.source.empty(); ++each) {
    if (each->state != ListedCheckpoint::State::kComplete) continue;
    const auto recorded = recorded_environment(files, each->prefix);
    if (!recorded) continue;
    found.source = base_name(each->prefix);
    for (const auto& [name, value] : *recorded) {
      if (is_option(name) && found.options.size() < kMostOptions) found.options.emplace(name, value);
    }
  }
  const JournalRecord journal = journal_of(files, directory);
  if (!journal.history.runs().empty()) found.options["host"] = journal.history.runs().back().host;
  return found;
}

// Of one run that cannot be read the others do not suffer.
FoundOptions options_or_problem(FileSystem& files, const std::string& directory) {
  try {
    return options_of(files, directory);
  } catch (const NotFoundError&) {  // it is gone
    return {};
  } catch (const Error& error) {
    return {.problem = error.what()};
  }
}

// A row for each option, with a value or null for each run.
Json rows_of(const std::vector<FoundOptions>& all) {
  std::set<std::string> names;
  for (const FoundOptions& each : all) {
    for (const auto& [name, value] : each.options) names.insert(name);
  }
  Json rows = Json::array();
  for (const std::string& name : names) {
    Json values = Json::array();
    std::set<std::string> different;
    bool is_missing = false;
    for (const FoundOptions& each : all) {
      const auto value = each.options.find(name);
      is_missing = is_missing || value == each.options.end();
      if (value != each.options.end()) different.insert(value->second);
      values.push_back(value != each.options.end() ? Json(shown(value->second, 500)) : Json());
    }
    rows.push_back({{"name", shown(name)},
                    {"values", values},
                    {"differs", is_missing || different.size() > 1},
                    {"recorded_differs", different.size() > 1}});
  }
  return rows;
}

}  // namespace

HttpReply training_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto run = run_in(runs, query);
  const double now = Clock::real().wall_time();
  Json json = {{"now", now}};
  json["status"] = show_status(runs.files(), {run->directory()}, now, {}).json["directories"][0];
  json["journal"] = Json();
  try {
    json["journal"] = list_runs(runs.files(), {.directory = run->directory()}, now, {}).json;
    json["events"] = events_json(journal_of(runs.files(), run->directory()).events);
  } catch (const Error&) {  // a directory of event files alone has none; of one that cannot be read the status tells
  }
  return json_reply(json_line(json));
}

HttpReply checkpoints_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto run = run_in(runs, query);
  Json json = {{"path", run->directory()}};
  try {
    json = list_checkpoints(runs.files(), {run->directory()}, Clock::real().wall_time(), {}).json["directories"][0];
  } catch (const Error& error) {
    json["error"] = shown(error.what(), 1000);
  }
  return json_reply(json_line(json));
}

HttpReply options_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto all = runs.all();
  if (all.empty()) throw NotFoundError("there is no run yet");
  Json json = Json::object();
  Json& listed = json["runs"] = Json::array();
  std::vector<FoundOptions> found;
  for (const int64_t number : integers_in(query, "runs", static_cast<int64_t>(all.size()) - 1, kMostRuns)) {
    found.push_back(options_or_problem(runs.files(), all[static_cast<size_t>(number)]->directory()));
    listed.push_back(
        {{"run", number}, {"source", shown(found.back().source)}, {"problem", shown(found.back().problem, 1000)}});
  }
  json["options"] = rows_of(found);
  return json_reply(json_line(json));
}

}  // namespace longhaul::console

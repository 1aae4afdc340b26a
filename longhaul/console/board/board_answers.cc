#include "longhaul/console/board/board_answers.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/embedded_page.h"
#include "longhaul/console/board/query_values.h"
#include "longhaul/console/text/report.h"
#include "longhaul/console/text/shown_text.h"

namespace longhaul::console {
namespace {

using Answer = HttpReply (*)(const BoardRuns&, const HttpQuery&);

Json texts_json(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(shown(text, 1000));
  return json;
}

void append_curves(std::string& out, const RunEvents& events) {
  const char* comma = "";
  for (const CurveFacts& curve : events.curves()) {
    fmt::format_to(std::back_inserter(out),
                   R"({}{{"tag":{},"kept":{},"added":{},"thinned":{},"first":{},"last":{},"value":)",
                   std::exchange(comma, ","), curve.tag, curve.kept, curve.added, curve.is_thinned, curve.first.step,
                   curve.last.step);
    append_number(out, curve.last.value);
    out += ",\"time\":";
    append_number(out, curve.last.time);
    out += "}";
  }
}

void append_media(std::string& out, const RunEvents& events, MediaKind kind) {
  const char* comma = "";
  for (const auto& [tag, series] : events.media(kind)) {
    fmt::format_to(std::back_inserter(out), R"({}{{"tag":{},"added":{},"last":{}}})", std::exchange(comma, ","), tag,
                   series.added, series.places.back().step);
  }
}

Json restarts_json(const std::vector<RestartMark>& marks) {
  Json json = Json::array();
  for (const RestartMark& mark : marks) {
    json.push_back({{"step", mark.step}, {"time", mark.time}, {"what", mark.what}, {"why", shown(mark.why, 300)}});
  }
  return json;
}

// The runs of a board as JSON. What they have is listed of those that are wanted, as long as there is room for it: a
// page asks every two seconds.
class RunsText {
 public:
  explicit RunsText(std::optional<std::set<int64_t>> wanted) : wanted_(std::move(wanted)) {}

  void add(size_t number, const BoardRun& run) {
    Json json = {{"run", number},
                 {"name", shown(run.name(), 300)},
                 {"directory", shown(run.directory(), 1000)},
                 {"gone", run.is_gone()}};
    const auto events = run.events();
    json["read"] = events != nullptr && events->is_read();
    json["problems"] = texts_json(run.problems());
    const std::optional<RunState> state = run.state();
    json["state"] = state ? Json(state->state) : Json();
    json["wrong"] = state ? texts_json(state->problems) : Json::array();
    json["notes"] = state ? texts_json(state->notes) : Json::array();
    if (events != nullptr) {
      const NewestScalar newest = events->newest();
      json["step"] = json_or_null(newest.step);
      json["time"] = newest.time;
    }
    const bool is_wanted = !wanted_ || wanted_->contains(static_cast<int64_t>(number));
    const bool is_listed = is_wanted && events != nullptr && has_room(run, *events);
    if (is_listed) json["restarts"] = restarts_json(run.restarts());
    if (!text_.empty()) text_ += ",";
    text_ += json_line(json);
    if (is_listed) append_lists(*events);
  }

  const std::string& text() const { return text_; }
  size_t left_out() const { return left_out_; }

 private:
  bool has_room(const BoardRun& run, const RunEvents& events) {
    const size_t needed = events.count() + run.restarts().size();
    if (needed > room_) ++left_out_;
    if (needed > room_) return false;
    room_ -= needed;
    return true;
  }

  // Into the object that ends the text.
  void append_lists(const RunEvents& events) {
    text_.resize(text_.rfind('}'));
    text_ += ",\"scalars\":[";
    append_curves(text_, events);
    constexpr std::pair<const char*, MediaKind> kKinds[] = {
        {"histograms", MediaKind::kHistogram}, {"images", MediaKind::kImage}, {"texts", MediaKind::kText}};
    for (const auto& [name, kind] : kKinds) {
      text_ += fmt::format("],\"{}\":[", name);
      append_media(text_, events, kind);
    }
    text_ += "]}";
  }

  const std::optional<std::set<int64_t>> wanted_;
  std::string text_;
  size_t room_ = kMostListed, left_out_ = 0;
};

// Those that the parameter "runs" names; nullopt without it: all.
std::optional<std::set<int64_t>> wanted_runs(const HttpQuery& query) {
  const auto found = query.find("runs");
  if (found == query.end()) return std::nullopt;
  if (found->second.empty()) return std::set<int64_t>();
  const std::vector<int64_t> numbers = integers_in(query, "runs", kMostRuns - 1, kMostRuns);
  return std::set<int64_t>(numbers.begin(), numbers.end());
}

HttpReply reply_or_refusal(const BoardRuns& runs, const HttpQuery& query, Answer answer) {
  try {
    return answer(runs, query);
  } catch (const InvalidArgumentError& error) {
    return text_reply(400, std::string(error.what()) + "\n");
  } catch (const NotFoundError& error) {
    return text_reply(404, std::string(error.what()) + "\n");
  } catch (const DataLossError& error) {
    return text_reply(410, std::string(error.what()) + "\n");
  } catch (const Error& error) {  // of the files: it may pass
    return text_reply(503, std::string(error.what()) + "\n");
  }
}

}  // namespace

HttpReply json_reply(std::string json) {
  return {.content_type = "application/json", .body = std::make_shared<const std::string>(std::move(json))};
}

std::shared_ptr<BoardRun> run_in(const BoardRuns& runs, const HttpQuery& query) {
  const auto all = runs.all();
  const int64_t number = integer_in(query, "run", 0, static_cast<int64_t>(kMostRuns));
  if (static_cast<size_t>(number) >= all.size()) throw NotFoundError(fmt::format("there is no run {}", number));
  return all[static_cast<size_t>(number)];
}

std::shared_ptr<RunEvents> events_in(const BoardRuns& runs, const HttpQuery& query) {
  const auto run = run_in(runs, query);
  auto events = run->events();
  if (events == nullptr) throw NotFoundError(fmt::format("{} is not read yet", shown(run->name())));
  return events;
}

HttpReply runs_answer(const BoardRuns& runs, const HttpQuery& query) {
  RunsText listed(wanted_runs(query));
  size_t number = 0;
  for (const auto& run : runs.all()) listed.add(number++, *run);
  Json json = json_of("board");
  json["now"] = Clock::real().wall_time();
  json["directories"] = texts_json(runs.directories());
  std::vector<std::string> notes = runs.notes();
  if (listed.left_out() > 0) {
    notes.push_back(
        fmt::format("{} of the chosen runs have too much to list ({} curves and more is the limit): choose "
                    "fewer",
                    listed.left_out(), kMostListed));
  }
  json["notes"] = texts_json(notes);
  json["read"] = runs.has_looked();
  Json& tags = json["tags"] = Json::array();  // after the runs, so that those of all are there
  for (const std::string& tag : runs.tags().all()) tags.push_back(shown(tag, kMostTagBytes));
  std::string text = json_line(json);
  text.resize(text.rfind('}'));
  return json_reply(text + ",\"runs\":[" + listed.text() + "]}\n");
}

std::vector<HttpRoute> board_routes(const std::shared_ptr<const BoardRuns>& runs) {
  std::vector<HttpRoute> routes;
  const auto add = [&](const char* path, Answer answer) {
    routes.push_back({.path = path, .answer = [runs, answer](const HttpRequest& request) {
                        return reply_or_refusal(*runs, request.query, answer);
                      }});
  };
  add("/runs.json", runs_answer);
  add("/scalars.json", scalars_answer);
  add("/histograms.json", histograms_answer);
  add("/images.json", images_answer);
  add("/image", image_answer);
  add("/texts.json", texts_answer);
  add("/training.json", training_answer);
  add("/checkpoints.json", checkpoints_answer);
  add("/options.json", options_answer);
  for (const EmbeddedFile& file : embedded_page()) {
    const auto text = std::make_shared<const std::string>(file.text);
    routes.push_back({.path = file.path, .answer = [type = file.content_type, text](const HttpRequest&) {
                        return HttpReply{.content_type = type, .body = text};
                      }});
  }
  routes.push_back({.path = "/healthz", .access = HttpAccess::kProbe, .answer = [](const HttpRequest&) {
                      return text_reply(200, "ok\n");
                    }});
  return routes;
}

}  // namespace longhaul::console

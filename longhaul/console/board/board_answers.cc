#include "longhaul/console/board/board_answers.h"

#include <fmt/format.h>

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

Json curves_json(const RunEvents& events) {
  Json json = Json::array();
  for (const CurveFacts& curve : events.curves()) {
    json.push_back({{"tag", curve.tag},
                    {"kept", curve.kept},
                    {"added", curve.added},
                    {"thinned", curve.is_thinned},
                    {"first", curve.first.step},
                    {"last", curve.last.step},
                    {"value", curve.last.value},
                    {"time", curve.last.time}});
  }
  return json;
}

Json media_json(const RunEvents& events, MediaKind kind) {
  Json json = Json::array();
  for (const auto& [tag, series] : events.media(kind)) {
    json.push_back({{"tag", tag}, {"added", series.added}, {"last", series.places.back().step}});
  }
  return json;
}

Json restarts_json(const BoardRun& run) {
  Json json = Json::array();
  for (const RestartMark& mark : run.restarts()) {
    json.push_back({{"step", mark.step}, {"time", mark.time}, {"why", shown(mark.why, 300)}});
  }
  return json;
}

Json run_json(size_t number, const BoardRun& run) {
  Json json = {{"run", number},
               {"name", shown(run.name(), 300)},
               {"directory", shown(run.directory(), 1000)},
               {"gone", run.is_gone()}};
  const auto events = run.events();
  json["read"] = events != nullptr && events->is_read();
  json["problems"] = texts_json(run.problems());
  json["restarts"] = restarts_json(run);
  if (events == nullptr) return json;
  json["scalars"] = curves_json(*events);
  json["histograms"] = media_json(*events, MediaKind::kHistogram);
  json["images"] = media_json(*events, MediaKind::kImage);
  json["texts"] = media_json(*events, MediaKind::kText);
  return json;
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

HttpReply runs_answer(const BoardRuns& runs, const HttpQuery& /*query*/) {
  Json json = json_of("board");
  json["now"] = Clock::real().wall_time();
  json["directories"] = texts_json(runs.directories());
  json["notes"] = texts_json(runs.notes());
  json["read"] = runs.has_looked();
  Json& listed = json["runs"] = Json::array();
  for (const auto& run : runs.all()) listed.push_back(run_json(listed.size(), *run));
  Json& tags = json["tags"] = Json::array();  // last, so that those of all runs are there
  for (const std::string& tag : runs.tags().all()) tags.push_back(shown(tag, kMostTagBytes));
  return json_reply(json_line(json));
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

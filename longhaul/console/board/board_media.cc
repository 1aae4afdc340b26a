// Images, histograms and texts, which are read back from the event files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_answers.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/histogram_bins.h"
#include "longhaul/console/board/query_values.h"
#include "longhaul/console/text/report.h"
#include "longhaul/media/image.h"

namespace longhaul::console {
namespace {

uint32_t tag_in(const HttpQuery& query) {
  return static_cast<uint32_t>(integer_in(query, "tag", 0, kMostTags));
}

// At most so many of them, from the first to the last.
std::vector<MediaPlace> some_of(const std::vector<MediaPlace>& places, size_t most) {
  if (places.size() <= most) return places;
  std::vector<MediaPlace> some;
  for (size_t i = 0; i < most; ++i) some.push_back(places[i * (places.size() - 1) / (most - 1)]);
  return some;
}

// One at a time is in memory: each may have megabytes.
template <typename Use>
void for_each_histogram(const RunEvents& events, const std::vector<MediaPlace>& places, Use&& use) {
  for (const MediaPlace& place : places) use(place, histogram_of(events.value_at(place)));
}

// From the least to the largest value of all; empty ones have neither.
std::pair<double, double> range_of(const RunEvents& events, const std::vector<MediaPlace>& places) {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  for_each_histogram(events, places, [&](const MediaPlace& /*place*/, const proto::HistogramProto& histogram) {
    const bool is_sound = histogram.num() > 0 && std::isfinite(histogram.min()) && std::isfinite(histogram.max());
    if (!is_sound || histogram.min() > histogram.max()) return;
    low = std::min(low, histogram.min());
    high = std::max(high, histogram.max());
  });
  if (low > high) return {0, 1};
  return high > low ? std::pair(low, high) : std::pair(low - 0.5, high + 0.5);
}

// InvalidArgumentError: the tag has no such image.
MediaPlace image_place(const RunEvents& events, uint32_t tag, int64_t step) {
  const std::vector<MediaPlace> places = events.places(MediaKind::kImage, tag);
  const auto found = std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.step == step; });
  if (found == places.end()) throw NotFoundError(fmt::format("there is no image of step {} with this tag", step));
  return *found;
}

}  // namespace

HttpReply histograms_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto events = events_in(runs, query);
  const uint32_t tag = tag_in(query);
  const std::vector<MediaPlace> places = some_of(events->places(MediaKind::kHistogram, tag), kMostHistograms);
  if (places.empty()) throw NotFoundError("this run has no histogram with this tag");
  const std::pair<double, double> range = range_of(*events, places);
  Json json = {{"tag", tag}, {"low", range.first}, {"high", range.second}};
  Json& all = json["histograms"] = Json::array();
  for_each_histogram(*events, places, [&](const MediaPlace& place, const proto::HistogramProto& histogram) {
    all.push_back({{"step", place.step},
                   {"time", place.time},
                   {"num", histogram.num()},
                   {"min", histogram.min()},
                   {"max", histogram.max()},
                   {"counts", counts_in_bins(histogram, range.first, range.second, kMostBins)}});
  });
  return json_reply(json_line(json));
}

// The step as a text, too: a browser rounds a number above 2^53, and asks for the image by its step.
HttpReply images_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto events = events_in(runs, query);
  const uint32_t tag = tag_in(query);
  Json json = {{"tag", tag}};
  Json& all = json["images"] = Json::array();
  for (const MediaPlace& place : events->places(MediaKind::kImage, tag)) {
    all.push_back({{"step", place.step}, {"exact_step", std::to_string(place.step)}, {"time", place.time}});
  }
  if (all.empty()) throw NotFoundError("this run has no image with this tag");
  return json_reply(json_line(json));
}

// What is neither PNG nor JPEG is not sent: it would be whatever the browser takes it for.
HttpReply image_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto events = events_in(runs, query);
  const int64_t step =
      integer_in(query, "step", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  std::string bytes = image_file(events->value_at(image_place(*events, tag_in(query), step)));
  if (bytes.size() > kMostImageFileBytes) {
    return text_reply(413,
                      fmt::format("The image has {} bytes; {} are the limit.\n", bytes.size(), kMostImageFileBytes));
  }
  if (!is_png(bytes) && !is_jpeg(bytes)) return text_reply(415, "This is no PNG and no JPEG image.\n");
  return {.content_type = is_png(bytes) ? "image/png" : "image/jpeg",
          .body = std::make_shared<const std::string>(std::move(bytes))};
}

HttpReply texts_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto events = events_in(runs, query);
  const uint32_t tag = tag_in(query);
  std::vector<MediaPlace> places = events->places(MediaKind::kText, tag);
  if (places.empty()) throw NotFoundError("this run has no text with this tag");
  const size_t first = places.size() - std::min(places.size(), kMostTexts);
  Json json = {{"tag", tag}, {"earlier", first}};
  Json& all = json["texts"] = Json::array();
  for (size_t i = places.size(); i > first; --i) {
    std::string text = whole_text(events->value_at(places[i - 1]));
    const size_t bytes = text.size();
    text.resize(std::min(text.size(), kMostTextBytes));
    all.push_back({{"step", places[i - 1].step}, {"time", places[i - 1].time}, {"text", text}, {"bytes", bytes}});
  }
  return json_reply(json_line(json));
}

}  // namespace longhaul::console

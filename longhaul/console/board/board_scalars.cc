// What is drawn of scalars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_answers.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/query_values.h"

namespace longhaul::console {
namespace {

constexpr int64_t kFirstStep = std::numeric_limits<int64_t>::min(), kLastStep = std::numeric_limits<int64_t>::max();

template <typename Append>
void append_list(std::string& out, const char* name, const std::vector<CurveSample>& samples, Append&& append) {
  fmt::format_to(std::back_inserter(out), "\"{}\":[", name);
  const char* comma = "";
  for (const CurveSample& sample : samples) {
    out += comma;
    append(sample);
    comma = ",";
  }
  out += "]";
}

void append_samples(std::string& out, const std::vector<CurveSample>& samples) {
  append_list(out, "steps", samples,
              [&](const CurveSample& sample) { fmt::format_to(std::back_inserter(out), "{}", sample.step); });
  out += ",";
  append_list(out, "values", samples, [&](const CurveSample& sample) { append_number(out, sample.value); });
}

void append_curve(std::string& out, int64_t run, const RunEvents::Drawn& drawn) {
  fmt::format_to(std::back_inserter(out), "{{\"run\":{},\"kept\":{},", run, drawn.kept);
  append_samples(out, drawn.raw);
  out += ",";
  append_list(out, "times", drawn.raw, [&](const CurveSample& sample) {
    fmt::format_to(std::back_inserter(out), "{}", std::isfinite(sample.time) ? std::round(sample.time) : 0);
  });
  if (!drawn.smooth.empty()) {
    out += ",\"smooth\":{";
    append_samples(out, drawn.smooth);
    out += "}";
  }
  out += "}";
}

}  // namespace

// Most are floats in the file.
void append_number(std::string& json, double value) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(value)) {
    json += "null";
  } else if (static_cast<double>(narrow) == value) {
    fmt::format_to(std::back_inserter(json), "{}", narrow);
  } else {
    fmt::format_to(std::back_inserter(json), "{}", value);
  }
}

HttpReply scalars_answer(const BoardRuns& runs, const HttpQuery& query) {
  const auto all = runs.all();
  if (all.empty()) throw NotFoundError("there is no run yet");
  const auto tag = static_cast<uint32_t>(integer_in(query, "tag", 0, kMostTags));
  const std::vector<int64_t> wanted = integers_in(query, "runs", static_cast<int64_t>(all.size()) - 1, kMostRuns);
  const int64_t from = integer_in(query, "from", kFirstStep, kLastStep, kFirstStep);
  const int64_t to = integer_in(query, "to", kFirstStep, kLastStep, kLastStep);
  const double smoothing = number_in(query, "smoothing", 0, 0.9999, 0);
  const int64_t points = integer_in(query, "points", 8, kMostDrawnOfCurve, 1000);
  const size_t most = std::min(static_cast<size_t>(points), kMostDrawnSamples / wanted.size());
  std::string json = fmt::format("{{\"tag\":{},\"curves\":[", tag);
  const char* comma = "";
  for (const int64_t run : wanted) {
    const auto events = all[static_cast<size_t>(run)]->events();
    const auto drawn = events != nullptr ? events->draw(tag, from, to, most, smoothing) : std::nullopt;
    if (!drawn) continue;
    json += comma;
    append_curve(json, run, *drawn);
    comma = ",";
  }
  return json_reply(json + "]}\n");
}

}  // namespace longhaul::console

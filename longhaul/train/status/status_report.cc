#include "longhaul/train/status/status_report.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "longhaul/status/metrics_text.h"

namespace longhaul {
namespace {

using nlohmann::json;

bool is_utf8(std::string_view text) {
  try {
    json(std::string(text)).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

// With control characters and what is not UTF-8 as "\x00", so that two names stay two.
std::string valid_text(const std::string& text) {
  std::string plain;
  const auto escape = [&](char c) { plain += fmt::format("\\x{:02x}", static_cast<unsigned char>(c)); };
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t size = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    const std::string_view character = std::string_view(text).substr(i, size);
    if (c < 0x20 || c == 0x7f || !is_utf8(character)) {
      escape(text[i++]);
    } else {
      plain += character;
      i += size;
    }
  }
  return plain;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename T>
json value_or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

const char* level_name(LogLevel level) {
  return level == LogLevel::kError ? "error" : level == LogLevel::kWarning ? "warning" : "info";
}

const char* end_name(PastRun::End end) {
  switch (end) {
    case PastRun::End::kOpen: return "under way";
    case PastRun::End::kEnded: return "ended";
    case PastRun::End::kFailed: return "failed";
    case PastRun::End::kDisturbed: return "disturbed";
    case PastRun::End::kDied: return "died";
    case PastRun::End::kKilled: return "killed";
  }
  return "";
}

std::vector<std::pair<const char*, Seconds>> parts_of(const TimeBreakdown& time) {
  return {{"training", time.training},
          {"redone", time.redone},
          {"saving", time.saving},
          {"restoring", time.restoring},
          {"initialising", time.initialising},
          {"stopped", time.stopped}};
}

void add_progress(MetricsText& text, const StatusReport& report) {
  const bool trains = report.phase == StatusReport::Phase::kTraining;
  text.family("longhaul_ready", "gauge", "1 while a session trains.").sample(trains ? 1 : 0);
  if (report.watches_hangs) {
    text.family("longhaul_hung", "gauge", "1 while training hangs; /healthz fails then.").sample(report.hung ? 1 : 0);
  }
  text.family("longhaul_start_time_seconds", "gauge", "When this process's run began, in seconds since 1970.")
      .sample(report.began);
  if (report.steps.now) {
    text.family("longhaul_step", "gauge", "The global step.").sample(static_cast<double>(*report.steps.now));
  }
  text.family("longhaul_steps_total", "counter", "Steps that this process was seen to make.")
      .sample(static_cast<double>(report.steps.made));
  text.family("longhaul_steps_per_second", "gauge", "Steps per second, in the last minute.")
      .sample(report.steps.per_second);
  if (report.steps.last_time > 0) {
    text.family("longhaul_last_step_time_seconds", "gauge",
                "When the step was last seen to grow, in seconds since 1970.")
        .sample(report.steps.last_time);
  }
  if (report.steps.last > 0) {
    text.family("longhaul_target_step", "gauge", "The step at which training ends.")
        .sample(static_cast<double>(report.steps.last));
  }
  if (report.steps.seconds_left) {
    text.family("longhaul_remaining_seconds", "gauge", "Until the target step, at this speed.")
        .sample(*report.steps.seconds_left);
  }
}

void add_saves(MetricsText& text, const StatusReport& report) {
  text.family("longhaul_saves_total", "counter", "Checkpoints that this process has saved.")
      .sample(static_cast<double>(report.saves.status.successes));
  text.family("longhaul_failed_saves_total", "counter", "Attempts of this process to save that failed.")
      .sample(static_cast<double>(report.saves.status.failures));
  text.family("longhaul_consecutive_failed_saves", "gauge", "Attempts to save that failed since the last success.")
      .sample(report.saves.status.consecutive_failures);
  if (report.saves.status.last_success_time > 0) {
    text.family("longhaul_last_save_time_seconds", "gauge",
                "When a checkpoint was last saved or found complete, in seconds since 1970.")
        .sample(report.saves.status.last_success_time);
  }
  if (report.saves.last) {
    text.family("longhaul_last_save_duration_seconds", "gauge", "How long the last checkpoint took.")
        .sample(report.saves.last->total.count());
    text.family("longhaul_last_save_stall_seconds", "gauge", "How long it held training up, at most.")
        .sample(report.saves.last->snapshot.count());
    text.family("longhaul_last_save_bytes", "gauge", "Its size.").sample(static_cast<double>(report.saves.last->bytes));
  }
  if (report.saves.mirror) {
    text.family("longhaul_mirror_consecutive_failed_copies", "gauge",
                "Attempts to copy a checkpoint to the mirror that failed since the last success.")
        .sample(report.saves.mirror->consecutive_failures);
  }
  if (report.free_bytes) {
    text.family("longhaul_disk_free_bytes", "gauge", "Free on the disk of the checkpoints, for this user.")
        .sample(static_cast<double>(*report.free_bytes));
  }
}

void add_history(MetricsText& text, const RunHistory& history) {
  text.family("longhaul_runs_total", "counter", "Runs in the directory, with this one.")
      .sample(static_cast<double>(history.sums().runs));
  text.family("longhaul_interruptions_total", "counter", "Runs that did not end normally, lost sessions and rollbacks.")
      .sample(static_cast<double>(history.sums().interruptions));
  text.family("longhaul_time_seconds", "gauge",
              "Where the time of all runs went. What is made again moves from training to redone.");
  for (const auto& [name, time] : parts_of(history.breakdown())) text.sample(time.count(), {{"spent", name}});
  text.family("longhaul_goodput_ratio", "gauge", "The share of all the time that went to steps which were kept.")
      .sample(history.breakdown().goodput() / 100);
  text.family("longhaul_unsaved_seconds", "gauge", "The time of the steps that a kill would lose.")
      .sample(history.at_stake().time().count());
}

json saves_as_json(const SaveStatus& saves) {
  return {{"consecutive_failures", saves.consecutive_failures},
          {"last_error", saves.last_error},
          {"last_failure_time", saves.last_failure_time},
          {"last_prefix", saves.last_prefix},
          {"last_success_time", saves.last_success_time}};
}

json history_as_json(const RunHistory& history) {
  json time = json::array();
  for (const auto& [name, spent] : parts_of(history.breakdown())) time.push_back({name, spent.count()});
  json runs = json::array();
  for (const PastRun& run : history.runs()) {
    runs.push_back({{"number", run.number},
                    {"began", run.began},
                    {"until", run.until},
                    {"end", end_name(run.end)},
                    {"from_step", value_or_null(run.from_step)},
                    {"last_step", value_or_null(run.last_step)},
                    {"host", run.host},
                    {"why", run.why}});
  }
  json rollbacks = json::array();
  for (const Rollback& rollback : history.rollbacks().all()) rollbacks.push_back(valid_text(rollback.describe()));
  return {{"runs", history.sums().runs},
          {"rollbacks", std::move(rollbacks)},
          {"interruptions", history.sums().interruptions},
          {"goodput", history.breakdown().goodput()},
          {"unsaved", history.at_stake().time().count()},
          {"time", std::move(time)},
          {"past", std::move(runs)}};
}

json log_as_json(const std::vector<LogLine>& lines) {
  json all = json::array();
  for (const LogLine& line : lines) all.push_back({line.time, level_name(line.level), line.text});
  return all;
}

json scalars_as_json(const std::map<std::string, CurvePoint>& scalars) {
  json all = json::array();
  for (const auto& [tag, point] : scalars) all.push_back({valid_text(tag), point.step, point.value});
  return all;
}

json last_save_as_json(const std::optional<SaveReport>& save) {
  if (!save) return nullptr;
  return {{"bytes", save->bytes}, {"stall", save->snapshot.count()}, {"total", save->total.count()}};
}

}  // namespace

const char* phase_name(StatusReport::Phase phase) {
  switch (phase) {
    case StatusReport::Phase::kPreparing: return "preparing";
    case StatusReport::Phase::kTraining: return "training";
    case StatusReport::Phase::kEnding: return "ending";
  }
  return "";
}

std::string report_as_metrics(const StatusReport& report) {
  MetricsText text;
  add_progress(text, report);
  add_saves(text, report);
  if (report.history) add_history(text, *report.history);
  text.family("longhaul_log_messages_total", "counter", "Messages of this process's log since the run began.")
      .sample(static_cast<double>(report.log.warnings), {{"level", "warning"}})
      .sample(static_cast<double>(report.log.errors), {{"level", "error"}});
  if (!report.scalars.empty()) {
    text.family("longhaul_scalar", "gauge", "The newest value of each scalar that training has written.");
    for (const auto& [tag, point] : report.scalars) text.sample(point.value, {{"tag", valid_text(tag)}});
  }
  text.family("longhaul_refused_scalars_total", "counter",
              "Values without a curve, because there were too many tags or theirs was too long.")
      .sample(static_cast<double>(report.refused_scalars));
  text.family("longhaul_status_requests_total", "counter", "Requests to this page.")
      .sample(static_cast<double>(report.requests));
  return text.take();
}

std::string report_as_json(const StatusReport& report) {
  return dump({{"phase", phase_name(report.phase)},
               {"why", report.why},
               {"directory", report.directory},
               {"host", report.host},
               {"hung", value_or_null(report.hung)},
               {"now", report.now},
               {"began", report.began},
               {"step", value_or_null(report.steps.now)},
               {"last_step", report.steps.last},
               {"steps_per_second", report.steps.per_second},
               {"seconds_left", value_or_null(report.steps.seconds_left)},
               {"last_step_time", report.steps.last_time},
               {"saves", saves_as_json(report.saves.status)},
               {"saved", report.saves.status.successes},
               {"failed_saves", report.saves.status.failures},
               {"last_save", last_save_as_json(report.saves.last)},
               {"restored_from", report.saves.restored_from},
               {"checkpoints", report.saves.kept},
               {"mirror", report.saves.mirror ? saves_as_json(*report.saves.mirror) : json(nullptr)},
               {"history", report.history ? history_as_json(*report.history) : json(nullptr)},
               {"free_bytes", value_or_null(report.free_bytes)},
               {"log", log_as_json(report.log.lines)},
               {"warnings", report.log.warnings},
               {"errors", report.log.errors},
               {"refused_scalars", report.refused_scalars},
               {"scalars", scalars_as_json(report.scalars)}});
}

// By hand: a hundred curves are forty thousand numbers.
std::string curves_as_json(const std::map<std::string, std::vector<CurvePoint>>& curves) {
  std::string text = "{";
  for (const auto& [tag, points] : curves) {
    if (text.size() > 1) text += ',';
    text += dump(json(valid_text(tag))) + ":[";
    for (size_t i = 0; i < points.size(); ++i) {
      if (i > 0) text += ',';
      const auto& [step, value] = points[i];
      if (std::isfinite(value)) {
        fmt::format_to(std::back_inserter(text), "[{},{:.5g}]", step, value);
      } else {
        fmt::format_to(std::back_inserter(text), "[{},null]", step);
      }
    }
    text += ']';
  }
  return text + "}";
}

}  // namespace longhaul

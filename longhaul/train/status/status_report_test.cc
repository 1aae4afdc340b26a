#include "longhaul/train/status/status_report.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "longhaul/io/files/file.h"
#include "longhaul/train/status/metrics_parser_fixture.h"

namespace longhaul {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Labels = std::map<std::string, std::string>;

RunHistory history() {
  RunHistory::Sums sums;
  sums.runs = 4;
  sums.interruptions = 3;
  sums.breakdown = {.training = Seconds{80},
                    .redone = Seconds{6},
                    .saving = Seconds{5},
                    .restoring = Seconds{4},
                    .initialising = Seconds{3},
                    .stopped = Seconds{2}};
  RunHistory made(sums);
  Rollbacks rollbacks;
  rollbacks.remember({.count = 1,
                      .diverged_step = 910,
                      .until_step = 911,
                      .restored_step = 800,
                      .loss = std::numeric_limits<double>::quiet_NaN(),
                      .checkpoint = "model.ckpt-800"});
  made.remember_rollbacks(std::move(rollbacks));
  made.remember_unsaved(UnsavedTime(Seconds{5000}, 1100));
  made.remember_at_stake(TimeAtStake(Seconds{12}, 1100));
  made.remember_run({.number = 4, .began = 100, .until = 200, .host = "node7", .why = "<script>"});
  return made;
}

// One in which everything is known.
StatusReport full_report() {
  StatusReport report;
  report.phase = StatusReport::Phase::kTraining;
  report.directory = "/runs/demo";
  report.host = "node7";
  report.watches_hangs = true;
  report.now = 2000;
  report.began = 1000;
  report.steps = {.now = 1200, .last = 2000, .made = 700, .per_second = 2.5, .seconds_left = 320, .last_time = 1999};
  report.saves.status = {.consecutive_failures = 2,
                         .last_error = "disk full",
                         .last_failure_time = 1990,
                         .last_prefix = "/runs/demo/model.ckpt-1000",
                         .last_success_time = 1900,
                         .successes = 5,
                         .failures = 3};
  report.saves.last = SaveReport{.bytes = 1 << 20, .snapshot = Seconds{0.25}, .total = Seconds{4}};
  report.saves.kept = {"/runs/demo/model.ckpt-900", "/runs/demo/model.ckpt-1000"};
  report.saves.restored_from = "/runs/demo/model.ckpt-500";
  report.saves.mirror = SaveStatus{.consecutive_failures = 1};
  report.history = history();
  report.free_bytes = 123456789;
  report.log = {.lines = {{1500, LogLevel::kWarning, "careful"}}, .warnings = 7, .errors = 1};
  report.scalars = {{"loss", {1190, 0.5}}};
  report.refused_scalars = 9;
  report.requests = 11;
  return report;
}

TEST(StatusReport, EachMetricHasItsValue) {
  const auto metrics = parse_metrics(report_as_metrics(full_report()));
  const std::map<std::string, double> expected{{"longhaul_ready", 1},
                                               {"longhaul_hung", 0},
                                               {"longhaul_start_time_seconds", 1000},
                                               {"longhaul_step", 1200},
                                               {"longhaul_steps_total", 700},
                                               {"longhaul_steps_per_second", 2.5},
                                               {"longhaul_last_step_time_seconds", 1999},
                                               {"longhaul_target_step", 2000},
                                               {"longhaul_remaining_seconds", 320},
                                               {"longhaul_saves_total", 5},
                                               {"longhaul_failed_saves_total", 3},
                                               {"longhaul_consecutive_failed_saves", 2},
                                               {"longhaul_last_save_time_seconds", 1900},
                                               {"longhaul_last_save_duration_seconds", 4},
                                               {"longhaul_last_save_stall_seconds", 0.25},
                                               {"longhaul_last_save_bytes", 1 << 20},
                                               {"longhaul_mirror_consecutive_failed_copies", 1},
                                               {"longhaul_disk_free_bytes", 123456789},
                                               {"longhaul_runs_total", 4},
                                               {"longhaul_interruptions_total", 3},
                                               {"longhaul_goodput_ratio", 0.8},
                                               {"longhaul_unsaved_seconds", 12},
                                               {"longhaul_refused_scalars_total", 9},
                                               {"longhaul_status_requests_total", 11}};
  for (const auto& [name, value] : expected) {
    ASSERT_EQ(metrics.count(name), 1u) << name;
    EXPECT_DOUBLE_EQ(metrics.at(name).value(), value) << name;
  }
  EXPECT_EQ(metrics.size(), expected.size() + 3) << "with those below";
  const std::map<Labels, double> time{{{{"spent", "training"}}, 80},    {{{"spent", "redone"}}, 6},
                                      {{{"spent", "saving"}}, 5},       {{{"spent", "restoring"}}, 4},
                                      {{{"spent", "initialising"}}, 3}, {{{"spent", "stopped"}}, 2}};
  EXPECT_EQ(metrics.at("longhaul_time_seconds").samples, time);
  const std::map<Labels, double> messages{{{{"level", "warning"}}, 7}, {{{"level", "error"}}, 1}};
  EXPECT_EQ(metrics.at("longhaul_log_messages_total").samples, messages);
  EXPECT_DOUBLE_EQ(metrics.at("longhaul_scalar").samples.at({{"tag", "loss"}}), 0.5);
}

TEST(StatusReport, WhatIsNotKnownHasNoMetric) {
  const auto metrics = parse_metrics(report_as_metrics({}));
  for (const char* name : {"longhaul_hung", "longhaul_step", "longhaul_target_step", "longhaul_remaining_seconds",
                           "longhaul_last_save_time_seconds", "longhaul_disk_free_bytes", "longhaul_runs_total",
                           "longhaul_scalar", "longhaul_mirror_consecutive_failed_copies"}) {
    EXPECT_EQ(metrics.count(name), 0u) << name;
  }
  EXPECT_EQ(metrics.at("longhaul_ready").value(), 0);
}

TEST(StatusReport, AHangIsAMetric) {
  StatusReport report = full_report();
  report.hung = "no step for 600 s";
  EXPECT_EQ(parse_metrics(report_as_metrics(report)).at("longhaul_hung").value(), 1);
}

TEST(StatusReport, TagsOfProgramsDoNotBreakTheFormat) {
  StatusReport report;
  const std::vector<std::string> tags{"a\"} 1\nb", "back\\slash", "\xff\xfe", "{}", "", "é"};
  for (const std::string& tag : tags) report.scalars[tag] = {1, std::numeric_limits<double>::quiet_NaN()};
  const auto metrics = parse_metrics(report_as_metrics(report));
  EXPECT_EQ(metrics.at("longhaul_scalar").samples.size(), tags.size());
  EXPECT_EQ(metrics.at("longhaul_scalar").samples.count({{"tag", "a\"} 1\\x0ab"}}), 1u);
  EXPECT_EQ(metrics.at("longhaul_scalar").samples.count({{"tag", "\\xff\\xfe"}}), 1u);
}

TEST(StatusReport, JsonHasWhatThePageShows) {
  const json page = json::parse(report_as_json(full_report()));
  EXPECT_EQ(page["phase"], "training");
  EXPECT_EQ(page["step"], 1200);
  EXPECT_EQ(page["seconds_left"], 320);
  EXPECT_EQ(page["saves"]["last_error"], "disk full");
  EXPECT_EQ(page["mirror"]["consecutive_failures"], 1);
  EXPECT_EQ(page["checkpoints"][1], "/runs/demo/model.ckpt-1000");
  EXPECT_EQ(page["history"]["time"][1], json({"redone", 6}));
  EXPECT_EQ(page["history"]["past"][0]["why"], "<script>");
  EXPECT_EQ(page["history"]["rollbacks"][0],
            "rollback 1: the loss of step 910 went bad (nan); back to step 800, model.ckpt-800");
  EXPECT_EQ(page["log"][0], json({1500, "warning", "careful"}));
  EXPECT_EQ(page["scalars"][0], json({"loss", 1190, 0.5}));
  EXPECT_EQ(page["free_bytes"], 123456789);
  EXPECT_EQ(page["hung"], nullptr);
}

TEST(StatusReport, JsonSurvivesWhatProgramsWrite) {
  StatusReport report;
  report.scalars["\xff"] = {1, std::numeric_limits<double>::infinity()};
  report.log.lines = {{0, LogLevel::kInfo, "\xc3"}};
  const json page = json::parse(report_as_json(report));
  EXPECT_EQ(page["scalars"][0], json({"\\xff", 1, nullptr}));
  EXPECT_EQ(page["step"], nullptr);
}

TEST(StatusReport, CurvesAreJson) {
  const json curves = json::parse(curves_as_json(
      {{"loss", {{1, 0.5}, {2, std::numeric_limits<double>::quiet_NaN()}, {3, -1e-30}}}, {"\"\xff", {}}}));
  EXPECT_EQ(curves["loss"], json({{1, 0.5}, {2, nullptr}, {3, -1e-30}}));
  EXPECT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves_as_json({}), "{}");
}

// Whoever adds a metric says there what to do when it is bad.
TEST(StatusReport, TheGuideListsExactlyTheseMetrics) {
  const std::string path = LONGHAUL_STATUS_GUIDE;
  std::vector<std::string> listed;
  const std::string page = read_file(FileSystem::real(), path);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("- `longhaul_", 0) == 0) listed.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  std::vector<std::string> exported;
  for (const auto& [name, metric] : parse_metrics(report_as_metrics(full_report()))) exported.push_back(name);
  EXPECT_THAT(listed, ::testing::UnorderedElementsAreArray(exported)) << path;
}

}  // namespace
}  // namespace longhaul

#include "longhaul/base/json_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "longhaul/base/step_of_thread.h"
#include "longhaul/base/thread.h"

namespace longhaul {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::Not;
using ::testing::StartsWith;

nlohmann::json parsed(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line: " << line;
  return nlohmann::json::parse(line);
}

TEST(JsonLog, ALineSaysWhenWhereHowBadAndWhat) {
  const LogPlace place{"/home/me/longhaul/longhaul/train/saving/saver.cc", 12};
  std::string text;
  NamedThread("lh-chief", [&] { text = json_log_line(LogLevel::kWarning, "it is slow", place); }).join();
  const nlohmann::json line = parsed(text);
  EXPECT_THAT(line["time"].get<std::string>(), ContainsRegex("^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z$"));
  EXPECT_EQ(line["severity"], "warning");
  EXPECT_EQ(line["source"], "longhaul/train/saving/saver.cc:12");
  EXPECT_EQ(line["thread"], "lh-chief");
  EXPECT_GT(line["thread_id"], 0);
  EXPECT_EQ(line["message"], "it is slow");
  EXPECT_EQ(line.count("step"), 0u);
  EXPECT_EQ(line.size(), 6u);
}

TEST(JsonLog, AThreadThatIsInAStepNamesIt) {
  const StepOfThread in_step(41200);
  EXPECT_EQ(parsed(json_log_line(LogLevel::kInfo, "x"))["step"], 41200);
}

TEST(JsonLog, WhateverAMessageIsTheLineIsValid) {
  const std::string message = std::string("a \"name\"\\ of\ntwo lines\x01 and ") + '\0' + "\xff\xfe é";
  const std::string line = json_log_line(LogLevel::kError, message);
  EXPECT_EQ(parsed(line)["message"], std::string("a \"name\"\\ of\ntwo lines\x01 and ") + '\0' + "\ufffd\ufffd é");
  for (const char c : line.substr(0, line.size() - 1)) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(JsonLog, AnEndlessMessageIsCut) {
  const std::string text = parsed(json_log_line(LogLevel::kInfo, std::string(1'000'000, 'x')))["message"];
  EXPECT_THAT(text, EndsWith("x... (1000000 bytes)"));
  EXPECT_LT(text.size(), 300'000u);
}

TEST(JsonLog, FurtherMembersHaveTheirTypes) {
  const nlohmann::json line = parsed(json_log_line(LogLevel::kInfo, "x", {},
                                                   {{"count", int64_t{3}},
                                                    {"rate", 0.5},
                                                    {"bad", std::numeric_limits<double>::quiet_NaN()},
                                                    {"event", std::string("progress")}}));
  EXPECT_EQ(line["count"], 3);
  EXPECT_EQ(line["rate"], 0.5);
  EXPECT_TRUE(line["bad"].is_null()) << "JSON has no NaN";
  EXPECT_EQ(line["event"], "progress");
}

TEST(JsonLog, APlaceIsNamedBelowTheRootOfTheSources) {
  EXPECT_EQ(place_text({"/src/longhaul/base/log.cc", 3}), "longhaul/base/log.cc:3");
  EXPECT_EQ(place_text({"longhaul/base/log.cc", 3}), "longhaul/base/log.cc:3");
  EXPECT_EQ(place_text({"/home/me/train.cc", 3}), "train.cc:3");
  EXPECT_EQ(place_text({"train.cc", 3}), "train.cc:3");
  EXPECT_EQ(place_text({}), "");
}

}  // namespace
}  // namespace longhaul

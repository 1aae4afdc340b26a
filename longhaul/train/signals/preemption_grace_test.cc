#include "longhaul/train/signals/preemption_grace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr double kNow = 1.6e9;

VariableReader with(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

double after(int signal, const std::map<std::string, std::string>& variables,
             std::optional<Seconds> told = std::nullopt) {
  return PreemptionGrace(told, with(variables)).after(signal, kNow).length.count();
}

TEST(PreemptionGrace, IsThirtySecondsWhereNobodySaysOtherwise) {
  EXPECT_EQ(after(SIGTERM, {}), 30);
  EXPECT_EQ(after(SIGUSR1, {}), 30);
  EXPECT_EQ(after(0, {}), 30);
}

TEST(PreemptionGrace, TheVariableCountsForAllSignals) {
  const std::map<std::string, std::string> both{{"LONGHAUL_PREEMPTION_GRACE", "2.5"},
                                                {"SLURM_JOB_END_TIME", "1600000060"}};
  EXPECT_EQ(after(SIGTERM, both), 2.5);
  EXPECT_EQ(after(SIGUSR1, both), 2.5);
}

TEST(PreemptionGrace, WhatTheProgramSaysOutranksTheVariable) {
  EXPECT_EQ(after(SIGTERM, {{"LONGHAUL_PREEMPTION_GRACE", "100"}}, Seconds{7}), 7);
}

TEST(PreemptionGrace, SlurmsWarningLeavesTheTimeUntilTheEndOfTheJob) {
  EXPECT_EQ(after(SIGUSR1, {{"SLURM_JOB_END_TIME", "1600000090"}}), 90);
}

TEST(PreemptionGrace, SlurmsSigtermComesAtAnyTimeBeforeTheEndOfTheJob) {
  EXPECT_EQ(after(SIGTERM, {{"SLURM_JOB_END_TIME", "1600009000"}}), 30);
}

TEST(PreemptionGrace, AClosedTerminalIsNoWarningOfSlurms) {
  EXPECT_EQ(after(SIGHUP, {{"SLURM_JOB_END_TIME", "1600009000"}}), 30);
}

TEST(PreemptionGrace, AJobWhoseEndIsPastOrUnknownHasTheDefault) {
  EXPECT_EQ(after(SIGUSR1, {{"SLURM_JOB_END_TIME", "1599999999"}}), 30);
  EXPECT_EQ(after(SIGUSR1, {{"SLURM_JOB_END_TIME", "soon"}}), 30);
  EXPECT_EQ(after(0, {{"SLURM_JOB_END_TIME", "1600000090"}}), 30);
}

TEST(PreemptionGrace, SaysWhereItIsFrom) {
  EXPECT_EQ(PreemptionGrace(std::nullopt, with({{"SLURM_JOB_END_TIME", "1600000090"}})).after(SIGUSR1, kNow).source,
            "SLURM_JOB_END_TIME");
  const PreemptionGrace pod(std::nullopt, with({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}));
  EXPECT_THAT(pod.after(SIGTERM, kNow).source, HasSubstr("Kubernetes"));
}

TEST(PreemptionGrace, NonsenseIsRefusedByName) {
  for (const char* text : {"", "soon", "30s", "-1", "nan", "inf"}) {
    const std::string error = error_of([&] { after(SIGTERM, {{"LONGHAUL_PREEMPTION_GRACE", text}}); });
    EXPECT_THAT(error, HasSubstr("LONGHAUL_PREEMPTION_GRACE")) << text;
  }
  EXPECT_THROW(after(SIGTERM, {}, Seconds{-1}), InvalidArgumentError);
  EXPECT_THROW(after(SIGTERM, {}, Seconds{std::numeric_limits<double>::infinity()}), InvalidArgumentError);
  EXPECT_THROW(after(SIGTERM, {}, Seconds{std::nan("")}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul

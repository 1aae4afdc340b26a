#include "longhaul/train/status/run_status.h"

#include <gmock/gmock.h>

#include "longhaul/events/file_writer.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using Phase = StatusReport::Phase;

class RunStatusTest : public ::testing::Test {
 protected:
  testing::FakeClock clock;
  std::shared_ptr<SaveAttempts> saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &clock});
  RunStatus status{{.page = {.address = "127.0.0.1:0", .last_step = 100}, .saves = saves, .clock = &clock}};
  Coordinator coord{{.clock = &clock}};
};

TEST_F(RunStatusTest, KnowsWhetherASessionTrains) {
  status.begins(nullptr);
  EXPECT_EQ(status.phase().first, Phase::kPreparing);
  status.recovered("/runs/model.ckpt-5");
  EXPECT_EQ(status.phase().first, Phase::kTraining);
  EXPECT_EQ(status.report().saves.restored_from, "/runs/model.ckpt-5");
  status.prepares("the session was lost");
  EXPECT_EQ(status.phase(), std::pair(Phase::kPreparing, std::string("the session was lost")));
  status.trains();
  EXPECT_EQ(status.phase(), std::pair(Phase::kTraining, std::string()));
  status.ends();
  EXPECT_EQ(status.phase().first, Phase::kEnding);
}

TEST_F(RunStatusTest, TellsSpeedAndTheTimeThatIsLeft) {
  status.look(10);
  clock.advance(Seconds{5});
  status.look(20);
  const StatusReport report = status.report();
  EXPECT_EQ(report.steps.now, 20);
  EXPECT_EQ(report.steps.made, 10);
  EXPECT_DOUBLE_EQ(report.steps.per_second, 2);
  EXPECT_DOUBLE_EQ(report.steps.seconds_left.value(), 40);
  EXPECT_EQ(report.steps.last_time, clock.wall_time());
}

TEST_F(RunStatusTest, WithoutSpeedNobodyKnowsTheTimeThatIsLeft) {
  status.look(10);
  EXPECT_EQ(status.report().steps.seconds_left, std::nullopt);
}

TEST_F(RunStatusTest, TheProgramsLastStepComesBeforeThatOfHooks) {
  status.ends_at(7);
  EXPECT_EQ(status.report().steps.last, 100);
  RunStatus other{{.clock = &clock}};
  other.ends_at(7);
  EXPECT_EQ(other.report().steps.last, 7);
}

TEST_F(RunStatusTest, CountsSavesAndFailures) {
  saves->failed(std::make_exception_ptr(ResourceExhaustedError("full")));
  saves->failed(std::make_exception_ptr(ResourceExhaustedError("full")));
  saves->succeeded("/runs/model.ckpt-1");
  saves->failed(std::make_exception_ptr(ResourceExhaustedError("full")));
  const StatusReport report = status.report();
  EXPECT_EQ(report.saves.status.successes, 1);
  EXPECT_EQ(report.saves.status.failures, 3);
  EXPECT_EQ(report.saves.status.consecutive_failures, 1);
}

TEST_F(RunStatusTest, ARequestForACheckpointFindsWhoServesIt) {
  status.trains();
  EXPECT_EQ(status.request_save(), RunStatus::Asked::kNobody);
  auto serves = status.serve_saves(coord);
  EXPECT_EQ(status.request_save(), RunStatus::Asked::kDone);
  EXPECT_TRUE(status.has_save_request());
  EXPECT_TRUE(status.take_save_request());
  EXPECT_FALSE(status.take_save_request());
  serves.reset();
  EXPECT_EQ(status.request_save(), RunStatus::Asked::kNobody);
  EXPECT_FALSE(status.has_save_request());
}

TEST_F(RunStatusTest, NoCheckpointIsRequestedWhileNoSessionTrains) {
  const auto serves = status.serve_saves(coord);
  status.ends();
  EXPECT_EQ(status.request_save(), RunStatus::Asked::kNobody);
}

TEST_F(RunStatusTest, AStopStopsTheCoordinator) {
  EXPECT_EQ(status.request_stop(), RunStatus::Asked::kNobody);
  status.stopped_by(coord);
  EXPECT_EQ(status.request_stop(), RunStatus::Asked::kDone);
  EXPECT_TRUE(coord.should_stop());
  EXPECT_EQ(coord.reported_error(), nullptr);
}

TEST_F(RunStatusTest, AHangIsOneOnlyDuringTraining) {
  EXPECT_FALSE(status.report().watches_hangs);
  status.watch_hangs([] { return std::optional<std::string>("no step for 600 s"); });
  EXPECT_EQ(status.hung(), std::nullopt);
  status.trains();
  EXPECT_EQ(status.hung(), "no step for 600 s");
  EXPECT_TRUE(status.report().watches_hangs);
  status.ends();
  EXPECT_EQ(status.hung(), std::nullopt);
}

TEST_F(RunStatusTest, FollowsTheScalarsOfADirectory) {
  testing::TemporaryDirectory directory;
  FileWriter writer(directory.path());
  status.follow_scalars(writer.logdir());
  status.follow_scalars(writer.logdir());
  writer.add_scalar("loss", 0.5f, 3);
  EXPECT_EQ(status.report().scalars.at("loss"), (CurvePoint{3, 0.5}));
  EXPECT_EQ(status.curves().at("loss").size(), 1u);
}

}  // namespace
}  // namespace longhaul

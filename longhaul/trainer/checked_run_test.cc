#include "longhaul/trainer/checked_run.h"

#include <stdlib.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint.h"
#include "longhaul/runtime/install.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(CheckedRun, ARunInTheChecksDirectoryStaysWhereItIs) {
  const CheckedRun check("/tmp/check/killed/", nullptr);
  for (const char* inside :
       {"/tmp/check/killed", "/tmp/check/killed/", "/tmp/check/killed/net", "/tmp/check/killed/a/.."})
    EXPECT_EQ(check.place_of(inside), inside);
}

TEST(CheckedRun, AnyOtherIsInAFolderOfIt) {
  const CheckedRun check("/tmp/check/killed", nullptr);
  EXPECT_EQ(check.place_of("runs/net"), "/tmp/check/killed/runs_net");
  EXPECT_EQ(check.place_of("./runs//net/"), "/tmp/check/killed/runs_net");
  EXPECT_EQ(check.place_of("/data/net"), "/tmp/check/killed/_data_net");
  EXPECT_EQ(check.place_of("/tmp/check/killed_too"), "/tmp/check/killed/_tmp_check_killed_too");
  EXPECT_EQ(check.place_of(".."), "/tmp/check/killed/run");
  EXPECT_EQ(check.place_of("."), "/tmp/check/killed/run");
  EXPECT_EQ(check.place_of(std::string(300, 'a') + "/b"), "/tmp/check/killed/" + std::string(198, 'a') + "_b");
}

TEST(CheckedRun, TheStepOfAStopIsANumber) {
  EXPECT_EQ(CheckedRun("/tmp", nullptr).stop_step(), -1);
  EXPECT_EQ(CheckedRun("/tmp", "938").stop_step(), 938);
  for (const char* wrong : {"", "-1", "9x", "99999999999999999999"})
    EXPECT_THROW(CheckedRun("/tmp", wrong), InvalidArgumentError) << wrong;
}

class CheckedTrainerTest : public TrainerTest {
 protected:
  void SetUp() override { setenv("LONGHAUL_RESUME_CHECK_DIR", fresh("check").c_str(), 1); }
  void TearDown() override {
    unsetenv("LONGHAUL_RESUME_CHECK_DIR");
    unsetenv("LONGHAUL_RESUME_CHECK_STOP_STEP");
  }
  static void train(Program& program, int expected) {
    EXPECT_EQ(program.trainer->run([&] {
      for ([[maybe_unused]] const int64_t step : program.trainer->steps(5)) program.step();
    }),
              expected);
  }
};

TEST_F(CheckedTrainerTest, SavesInTheChecksDirectoryAndSaysSo) {
  const Logged logged;
  Program program("runs/net");
  train(program, 0);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("the run is in " + fresh("check") + "/runs_net, not in runs/net")));
  EXPECT_TRUE(latest_checkpoint(FileSystem::real(), fresh("check/runs_net")));
}

TEST_F(CheckedTrainerTest, StopsAfterTheStepThatTheCheckNames) {
  setenv("LONGHAUL_RESUME_CHECK_STOP_STEP", "3", 1);
  {
    Program program("runs/net");
    train(program, kPreemptedStatus);
  }
  const std::string place = fresh("check/runs_net");
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), place).value_or("none"), place + "/model.ckpt-3");
  Program again("runs/net");
  train(again, 0);
}

}  // namespace
}  // namespace longhaul

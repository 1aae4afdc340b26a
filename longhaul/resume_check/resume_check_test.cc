#include "longhaul/resume_check/resume_check.h"

#include <gmock/gmock.h>

#include "longhaul/base/error.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ResumeCheckTest : public ::testing::Test {
 protected:
  ResumeCheckOptions of(const std::string& mode) {
    return {.command = {TINY_TRAINING, mode, "{}"},
            .keep = directory_.file("runs"),
            .time_limit = Seconds{60},
            .seed = 5,
            .say = [this](const std::string& line) { lines_.push_back(line); }};
  }

  const testing::TemporaryDirectory directory_;
  std::vector<std::string> lines_;
};

TEST_F(ResumeCheckTest, AnExactProgramIsTheSame) {
  ResumeCheckOptions options = of("exact");
  options.epoch_steps = 50;
  const ResumeCheckResult result = check_resume(options);
  EXPECT_TRUE(result.is_same) << result.text;
  EXPECT_THAT(result.text, AllOf(HasSubstr("killed: the same bytes in all 3 variables of model.ckpt-150"),
                                 HasSubstr("stopped: the same bytes in all 3 variables of model.ckpt-150")));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("killed: SIGKILL after "), HasSubstr("signal 9"))).Times(3));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("stopped: SIGTERM after "), HasSubstr("exit status 75"))).Times(3));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("stopped: that is "), HasSubstr("epoch"))).Times(3));
  for (const char* kept : {"undisturbed", "killed", "stopped", "killed.log"}) {
    EXPECT_TRUE(FileSystem::real().exists(directory_.file("runs/") + kept)) << kept;
  }
}

// 150 steps are three epochs of 40 and a part of one.
TEST_F(ResumeCheckTest, AProgramWithATrainerStopsAtAnEpochsLastStep) {
  ResumeCheckOptions options = of("epochs");
  options.kills = 0;
  const ResumeCheckResult result = check_resume(options);
  EXPECT_TRUE(result.is_same) << result.text;
  EXPECT_THAT(lines_, Contains(HasSubstr("stopped: stopped as by SIGTERM after step 120, exit status 75; its newest "
                                         "checkpoint: model.ckpt-120")));
  EXPECT_THAT(lines_, Contains(HasSubstr("stopped: that is the last step of an epoch")));
}

TEST_F(ResumeCheckTest, AForgottenGeneratorIsFoundAndNamed) {
  const ResumeCheckResult result = check_resume(of("forgets"));
  EXPECT_FALSE(result.is_same);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("1 of 2 variables of model.ckpt-150 differ; the first is weight: 1 of 1"),
                    HasSubstr("Two undisturbed runs are the same"), HasSubstr("no state of a random number generator"),
                    HasSubstr("docs/guide/restarts.md#random-numbers")));
}

TEST_F(ResumeCheckTest, AProgramThatDoesNotRepeatItselfIsNotBlamedOnRestarts) {
  const ResumeCheckResult result = check_resume(of("drifts"));
  EXPECT_FALSE(result.is_same);
  EXPECT_THAT(result.text, HasSubstr("Two undisturbed runs differ, too"));
}

TEST_F(ResumeCheckTest, AProgramThatBeginsAnewIsNamed) {
  EXPECT_THAT([&] { check_resume(of("anew")); },
              ThrowsMessage<AbortedError>(AllOf(HasSubstr("killed: started again with "), HasSubstr("it began anew"))));
}

TEST_F(ResumeCheckTest, AStopThatIsIgnoredShowsNothing) {
  ResumeCheckOptions options = of("deaf");
  options.kills = 0;
  EXPECT_THAT([&] { check_resume(options); },
              ThrowsMessage<AbortedError>(AllOf(HasSubstr("stopped: no disturbance"), HasSubstr("nothing is shown"))));
}

TEST_F(ResumeCheckTest, AFailureHasItsLastLines) {
  EXPECT_THAT(
      [&] { check_resume(of("fails")); },
      ThrowsMessage<AbortedError>(AllOf(HasSubstr("undisturbed: it ended with exit status 3. Its last lines:\n"),
                                        HasSubstr("the data is missing"))));
}

TEST_F(ResumeCheckTest, ARunHasALimitOfTime) {
  ResumeCheckOptions options = of("hangs");
  options.time_limit = Seconds{0.3};
  EXPECT_THAT([&] { check_resume(options); },
              ThrowsMessage<AbortedError>(HasSubstr("undisturbed: not over after 0.3 s (--timeout")));
}

TEST_F(ResumeCheckTest, WrongUsageIsNamedWithTheRemedy) {
  EXPECT_THAT([&] { check_resume(of("silent")); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("wrote no checkpoint"), HasSubstr("{}"), HasSubstr("LONGHAUL_RESUME_CHECK_DIR"))));
  EXPECT_THAT([&] { check_resume(of("exact")); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("is not empty")));
  EXPECT_THROW(check_resume({}), InvalidArgumentError);
}

TEST_F(ResumeCheckTest, TheDirectoryIsInTheEnvironmentToo) {
  ResumeCheckOptions options = of("exact");
  options.command.pop_back();
  options.stops = 0;
  options.kills = 1;
  EXPECT_TRUE(check_resume(options).is_same);
}

}  // namespace
}  // namespace longhaul

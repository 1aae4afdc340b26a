#include "longhaul/train/supervisor/missing_steps.h"

#include "longhaul/ops/external_variable.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MissingStepsTest : public SupervisorFixture {
 protected:
  // What a run of so many seconds is told that begins and ends at these steps.
  std::string told(const Output& global_step, double seconds, int64_t begin = 0, MissingSteps::Seen seen = {0}) {
    const LogRecorder log;
    MissingSteps missing(global_step);
    missing.session_begins(Seconds{100}, begin);
    for (double now = 0; now <= seconds; now += 5) missing.look(Seconds{100 + now}, seen);
    missing.ends(Seconds{100 + seconds}, seen);
    return log.text(LogLevel::kWarning);
  }
  // Of a Supervisor, whose body runs nothing for longer than ten minutes.
  std::string told_by_supervisor(Seconds save_model_secs) {
    options.save_model_secs = save_model_secs;
    options.chief.lock.lease_secs = Seconds{1e9};  // so that time may pass quickly
    options.services.hang.after = Seconds{0};      // it would tell of no steps, too
    const LogRecorder log;
    Supervisor sv(options);
    sv.managed_session([&](Session&) {
      eventually([&] { return save_model_secs == Seconds{0} || journal().has_saved; });
      const double begin = clock.wall_time();
      as_time_passes([&] { return journal().until > begin; });  // the journal's service looks at steps from here on
      const double since = clock.wall_time();
      as_time_passes([&] { return journal().until > since + 700; });
    });
    return log.text(LogLevel::kWarning);
  }
  RunHistory::Sums journal() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.sums();
  }
  template <typename Condition>
  void as_time_passes(Condition condition) {
    eventually([&] {
      clock.advance(Seconds{5});
      return condition();
    });
  }
};

TEST_F(MissingStepsTest, AreToldOfWhileARunGoesOnOnce) {
  add_step();
  const std::string text = told(step, 700);
  EXPECT_THAT(text, AllOf(HasSubstr("no step has been made since the session began, 600 s ago"),
                          HasSubstr("the global step (global_step) is still 0"),
                          HasSubstr("run the operation that counts it")));
  EXPECT_EQ(text.find("no step"), text.rfind("no step"));
  EXPECT_EQ(told(step.ref(), 700), text) << "the variable itself, and not a read of it";
}

TEST_F(MissingStepsTest, AreToldOfAtTheEndOfARunThatWasNoTrial) {
  add_step();
  EXPECT_THAT(told(step, 59), IsEmpty());
  EXPECT_THAT(told(step, 60), HasSubstr("60 s ago"));
}

TEST_F(MissingStepsTest, AreNoneWhereStepsAreMadeOrWereMadeBefore) {
  add_step();
  EXPECT_THAT(told(step, 700, 0, {1}), IsEmpty());
  EXPECT_THAT(told(step, 700, 5, {5}), IsEmpty()) << "a training run that had ended";
  EXPECT_THAT(told(step, 700, 0, {std::nullopt}), IsEmpty()) << "nobody knows";
}

TEST_F(MissingStepsTest, AreNotToldOfWhileTheFirstStepIsUnderWay) {
  add_step();
  EXPECT_THAT(told(step, 7000, 0, {.step = 0, .is_under_way = true}), IsEmpty());

  const LogRecorder log;
  MissingSteps missing(step);
  missing.session_begins(Seconds{100}, 0);
  missing.look(Seconds{800}, {.step = 0, .is_under_way = true});
  EXPECT_THAT(log.text(LogLevel::kWarning), IsEmpty());
  missing.look(Seconds{805}, {.step = 0});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("705 s ago")) << "it ended, and has counted nothing";
}

TEST_F(MissingStepsTest, AreNoneWhereNothingCountsThem) {
  EXPECT_THAT(told(Output(), 700), IsEmpty());
  step = ops::variable(root, "global_step", ops::constant(root, int64_t{0}), {.trainable = false});
  const Variable other = ops::variable(root, "other", ops::constant(root, int64_t{0}), {.trainable = false});
  ops::assign_add(root, other, ops::constant(root, int64_t{1}));
  EXPECT_THAT(told(step, 700), IsEmpty()) << "an evaluation";
}

TEST_F(MissingStepsTest, OfABoundProgramAreMadeByItsTrainOp) {
  step = ops::variable(root, "global_step", ops::constant(root, int64_t{0}), {.trainable = false});
  ops::program_step(root, step, {}, [](int64_t, const std::vector<Tensor>&) {});
  EXPECT_THAT(told(step, 700), HasSubstr("run TorchTraining::train_op for each step"));
}

TEST_F(MissingStepsTest, OfABodyThatNeverTrainsAreToldOfByItsSupervisor) {
  add_step();
  EXPECT_THAT(told_by_supervisor(Seconds{1e9}), HasSubstr("no step has been made since the session began"));
}

TEST_F(MissingStepsTest, AreNotToldOfByASupervisorThatSavesNothing) {
  add_step();
  EXPECT_THAT(told_by_supervisor(Seconds{0}), Not(HasSubstr("no step")));
}

}  // namespace
}  // namespace longhaul

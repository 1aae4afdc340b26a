#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"

// What TensorBoard shows of a training whose session is lost.
namespace longhaul {
namespace {

using independent::CurveReader;
using independent::Rule;
using ::testing::ElementsAre;

class MonitoredCurves : public MonitoredFixture {
 protected:
  MonitoredCurves() {
    summary::scalar(root, "v", ops::constant(root, 1.0f));
    training = {.graph = &graph,
                .checkpoint_dir = directory.path(),
                .hooks = {loses},
                .save_checkpoint_steps = 3,
                .save_summaries_steps = 1,
                .log_step_count_steps = 2,
                .failures = {.restart = {.backoff = Seconds{0}}},
                .coordinator = coordinator};
  }

  // Steps, one a second, up to step 7; the session is lost after step 5, and the next one begins at step 3.
  void train_and_lose_a_session() {
    monitored_training_session(training, [&](MonitoredSession& session) {
      for (int i = 0; i < 9; ++i) {
        loses->on_before = [&](SessionRunContext&) {
          if (i == 5 && sessions == 1) throw AbortedError("preempted");
        };
        session.run(train);
        clock.advance(Seconds{1});
      }
    });
    EXPECT_EQ(sessions, 2);
  }
  std::vector<int64_t> steps_shown(Rule rule, const std::string& tag) {
    return CurveReader::read(directory.path(), rule).at(tag).steps();
  }

  const std::shared_ptr<RecordingHook> loses = std::make_shared<RecordingHook>();
  MonitoredTrainingSessionOptions training;
};

TEST_F(MonitoredCurves, AreOneForEachTagByBothRules) {  // TB-3, TB-4, TB-5, unlike HU-3
  train_and_lose_a_session();
  for (const Rule rule : {Rule::kStart, Rule::kPerTag}) {
    EXPECT_THAT(steps_shown(rule, "v"), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  }
  EXPECT_THAT(steps_shown(Rule::kStart, "global_step/sec"), ElementsAre(3, 6));
  EXPECT_THAT(steps_shown(Rule::kPerTag, "global_step/sec"), ElementsAre(3, 5, 6));
}

TEST_F(MonitoredCurves, OfTheSpeedAloneAreNotDoubledEither) {  // TB-3, TB-5
  training.save_summaries_steps = kNone;
  train_and_lose_a_session();
  EXPECT_THAT(steps_shown(Rule::kStart, "global_step/sec"), ElementsAre(3, 6));
}

}  // namespace
}  // namespace longhaul

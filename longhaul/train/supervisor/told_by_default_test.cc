#include <csignal>

#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_signals.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// What the log tells of a training where nobody has chosen a level: it is then kInfo.
class ToldByDefault : public SupervisorFixture {
 protected:
  ToldByDefault() { add_step(); }

  void train_for(int steps) {
    restart();
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      for (int i = 0; i < steps; ++i) {
        session.run(train);
        clock.advance(Seconds{1});
      }
    });
  }
  std::string told() const { return log.text(LogLevel::kInfo); }

  const LogRecorder log;
};

TEST_F(ToldByDefault, ACheckpointItsStepSizeAndTime) {
  train_for(3);
  EXPECT_THAT(told(), ContainsRegex("checkpoint " + directory.file("model.ckpt-3") +
                                    " was saved: step 3, [0-9.]+ [a-zA-Z]+ in [0-9]+\\.[0-9][0-9] s\n"));
}

TEST_F(ToldByDefault, FromWhichCheckpointItGoesOn) {
  train_for(3);
  train_for(1);
  EXPECT_THAT(told(), HasSubstr("Restored model from " + directory.file("model.ckpt-3") + "\n"));
}

TEST_F(ToldByDefault, WhereTheTimeWent) {
  train_for(3);
  EXPECT_THAT(told(), ContainsRegex(directory.path() + ": [0-9.]+ s in 1 run, too short to measure goodput\n"));
}

TEST_F(ToldByDefault, ASignalAndWhatFollowsFromIt) {
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGTERM);
  eventually([&] { return told().find("SIGTERM") != std::string::npos; });  // which comes after the stop
  EXPECT_TRUE(coord.should_stop());
  EXPECT_THAT(told(), HasSubstr("SIGTERM: training stops after the current step; another signal ends the process "
                                "at once\n"));
}

TEST_F(ToldByDefault, SignalsOfASchedulerAndWhatFollowsFromThem) {
  Preemption preemption({.stop_signals = {SIGTERM}, .interrupt_signals = {SIGINT}, .save_signals = {SIGUSR1}});
  raise(SIGUSR1);
  eventually([&] { return told().find("SIGUSR1") != std::string::npos; });
  raise(SIGINT);
  eventually([&] { return told().find("SIGINT") != std::string::npos; });
  EXPECT_THAT(told(),
              AllOf(HasSubstr("SIGUSR1: a checkpoint is saved after the current step, and training continues\n"),
                    HasSubstr("SIGINT: training stops after the current step and a last checkpoint; another "
                              "signal ends the process at once\n")));
}

TEST_F(ToldByDefault, APreemptionAndTheTimeThatIsLeft) {
  Preemption preemption({.clock = &clock});
  const auto attached = preemption.attach(Coordinator());
  preemption.preempt(Seconds{9});
  EXPECT_EQ(preemption.exit_status(), kPreemptedStatus);
  EXPECT_THAT(
      told(),
      HasSubstr("preempted: training stops after the current step, with 9 s for the step and a last checkpoint"));
}

}  // namespace
}  // namespace longhaul

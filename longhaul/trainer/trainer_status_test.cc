// What the page about a Trainer's run knows of its end.
#include "longhaul/train/status/run_status.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

class TrainerStatusTest : public TrainerTest {
 protected:
  static TrainerOptions with_page(int64_t last_step = 0) {
    return {.supervisor = [last_step](SupervisorOptions& options) {
      options.chief.status = {.address = "127.0.0.1:0", .last_step = last_step};
    }};
  }
  static int64_t last_step(const Program& program) {
    const std::shared_ptr<Session> session(std::shared_ptr<void>(), &program.trainer->session());
    return program.trainer->supervisor().service_context(session).status->report().steps.last;
  }

  const Logged logged_;
};

TEST_F(TrainerStatusTest, ItIsTheLoopsLastStep) {
  Program program(fresh("run"), with_page());
  EXPECT_EQ(program.trainer->run([&] {
    EXPECT_EQ(last_step(program), 0) << "before the loops";
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) {
      program.step();
      EXPECT_EQ(last_step(program), 3);
    }
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(5)) {
      program.step();
      EXPECT_EQ(last_step(program), 5);
    }
  }),
            0);
}

TEST_F(TrainerStatusTest, OfEpochsItIsKnownWhenTheFirstHasEndedAndAtOnceAfterARestart) {
  for (const bool is_restarted : {false, true}) {
    Program program(fresh("run"), with_page());
    if (!is_restarted) program.stop_at(5);
    EXPECT_EQ(program.trainer->run([&] {
      for (const int64_t epoch : program.trainer->epochs(3)) {
        for ([[maybe_unused]] const int64_t i : program.trainer->batches(4)) {
          program.step();
          EXPECT_EQ(last_step(program), epoch == 0 ? 0 : 12);
        }
      }
    }),
              0);
  }
}

TEST_F(TrainerStatusTest, WhatThePageWasToldCounts) {
  Program program(fresh("run"), with_page(1000));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) {
      program.step();
      EXPECT_EQ(last_step(program), 1000);
    }
  }),
            0);
}

}  // namespace
}  // namespace longhaul

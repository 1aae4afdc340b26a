#include "longhaul/cluster/worker/step_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/cluster/worker/step_table.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::exception_ptr data_loss() {
  return std::make_exception_ptr(DataLossError("torn"));
}

class StepLifeTest : public ::testing::Test {
 protected:
  StepLife::Reply note(std::vector<std::string>& log, const std::string& what) {
    return [&log, what](const StepOutcome& outcome) {
      log.push_back(what + " " + proto::StepState_Name(outcome.state) + (outcome.error ? " failed" : ""));
    };
  }
  void be_prepared() {
    EXPECT_TRUE(life_.set_prepared([this](const std::string& id) { let_in_.push_back(id); }));
  }

  StepLife life_{{.step = 5, .master = {"/job:worker/replica:0/task:0", 9}, .session = "s", .joint = true}};
  std::vector<std::string> log_, let_in_;
};

TEST_F(StepLifeTest, ACommitIsAnsweredWhenTheStepIsOver) {
  life_.when_run(note(log_, "run"));
  EXPECT_THAT(log_, IsEmpty());
  be_prepared();
  EXPECT_THAT(log_, ElementsAre("run STEP_PREPARED"));
  life_.commit(note(log_, "commit"));
  EXPECT_EQ(life_.abort(data_loss()), proto::STEP_COMMITTED) << "too late";
  life_.set_written();
  life_.finish({});
  life_.commit(note(log_, "again"));
  EXPECT_THAT(log_, ElementsAre("run STEP_PREPARED", "commit STEP_COMMITTED", "again STEP_COMMITTED"));
}

TEST_F(StepLifeTest, ACommitOfWhatIsNotPreparedIsRefused) {
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { life_.commit(note(log_, "commit")); }), HasSubstr("step 5"));
}

TEST_F(StepLifeTest, AnAbortEndsTheWaitsAndIsTheError) {
  std::string ended;
  life_.on_abort([&](std::exception_ptr error) { ended = message_of(error); });
  EXPECT_EQ(life_.abort(std::make_exception_ptr(ConsequenceError(data_loss()))), proto::STEP_ABORTED);
  EXPECT_EQ(ended, "torn");
  life_.when_run(note(log_, "run"));
  life_.fail(std::make_exception_ptr(CancelledError("the wait was cancelled")));
  EXPECT_THAT(log_, ElementsAre("run STEP_ABORTED failed"));
  EXPECT_TRUE(is_consequence(life_.ask(false).error)) << "what follows from the abort does not replace its cause";
}

TEST_F(StepLifeTest, InDoubtTheMastersCommitWaitsForTheOthers) {
  be_prepared();
  EXPECT_EQ(life_.ask(/*resolve=*/true).state, proto::STEP_PREPARED);
  EXPECT_TRUE(life_.is_in_doubt());
  life_.commit(note(log_, "commit"));
  ::longhaul::testing::FakeClock clock;
  EXPECT_EQ(life_.wait_for_verdict(clock, clock.now() + Seconds{10}), StepLife::Verdict::kInDoubt);
  life_.resolve(/*commit=*/false, "nobody has committed it");
  EXPECT_EQ(life_.wait_for_others(clock, clock.now() + Seconds{10}), StepLife::Verdict::kAborted);
  life_.finish({});
  EXPECT_THAT(log_, ElementsAre("commit STEP_ABORTED failed"));
}

TEST_F(StepLifeTest, ASnapshotThatKnowsOfACommitEndsTheDoubt) {
  be_prepared();
  life_.lose_master("it died");
  life_.commit_as_others("snapshot", note(log_, "commit"));
  EXPECT_THAT(let_in_, ElementsAre("snapshot"));
  ::longhaul::testing::FakeClock clock;
  EXPECT_EQ(life_.wait_for_others(clock, clock.now() + Seconds{10}), StepLife::Verdict::kCommit);
  life_.resolve(/*commit=*/false, "too late");
  life_.set_written();
  EXPECT_THAT(log_, ElementsAre("commit STEP_COMMITTED"));
}

TEST_F(StepLifeTest, WhatIsDroppedInDoubtIsNoAnswerToOthers) {
  be_prepared();
  life_.drop("not in doubt: nothing happens");
  EXPECT_EQ(life_.state(), proto::STEP_PREPARED);
  life_.lose_master("it died");
  life_.drop("nobody answers");
  EXPECT_EQ(life_.state(), proto::STEP_ABORTED);
  EXPECT_EQ(life_.ask(/*resolve=*/true).state, proto::STEP_PREPARED);
}

TEST_F(StepLifeTest, AStepThatIsCommittedElsewhereStaysCommittedIfItsWritesFail) {
  be_prepared();
  life_.commit(note(log_, "commit"));
  life_.fail(data_loss());
  EXPECT_THAT(log_, ElementsAre("commit STEP_COMMITTED failed"));
  EXPECT_EQ(life_.ask(false).state, proto::STEP_COMMITTED);
  EXPECT_FALSE(life_.has_written());
}

TEST_F(StepLifeTest, AMasterThatIsSilentForTooLongCountsAsDead) {
  be_prepared();
  ::longhaul::testing::FakeClock clock;
  EXPECT_EQ(life_.wait_for_verdict(clock, clock.now() - Seconds{1}), StepLife::Verdict::kInDoubt);
  EXPECT_TRUE(life_.is_in_doubt());
}

TEST(StepTableTest, AStepIsItsMastersAlone) {
  StepTable table({});
  StepLife::Call call{.step = 5, .master = {"one", 1}};
  EXPECT_TRUE(table.begin(call).is_new);
  EXPECT_FALSE(table.begin(call).is_new);
  call.master = {"two", 2};
  EXPECT_THAT(error_of<AbortedError>([&] { table.begin(call); }), HasSubstr("belongs to the master on task one"));
  EXPECT_THROW(table.find(5, {"two", 2}), AbortedError);
  EXPECT_NE(table.find(5), nullptr) << "participants may ask";
}

TEST(StepTableTest, WhatIsForgottenIsRememberedByItsOutcome) {
  StepTable table({});
  const auto life = table.begin({.step = 5, .master = {"one", 1}}).life;
  table.forget_when_over(5);
  EXPECT_NE(table.find(5), nullptr) << "it is not over";
  EXPECT_TRUE(life->commit_alone());
  life->set_written();
  life->finish({});
  table.keep(life);
  EXPECT_EQ(table.find(5), nullptr);
  EXPECT_EQ(table.remembered(5), proto::STEP_COMMITTED);
  EXPECT_THROW(table.begin({.step = 5, .master = {"one", 1}}), AbortedError);
  EXPECT_EQ(table.bury(6), nullptr);
  EXPECT_EQ(table.remembered(6), proto::STEP_ABORTED);
  EXPECT_EQ(table.remembered(7), proto::STEP_UNKNOWN);
}

TEST(StepTableTest, KeptResultsAreBounded) {
  StepTable table({.most_result_bytes = 100, .most_over = 3});
  for (int64_t step = 1; step <= 5; ++step) {
    const auto life = table.begin({.step = step, .master = {"one", 1}}).life;
    life->commit_alone();
    life->set_written();
    life->finish({Tensor::of<float>({1, 2, 3, 4})});
    table.keep(life);
  }
  EXPECT_EQ(table.all().size(), 3u);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_NE(table.find(5), nullptr);
}

}  // namespace
}  // namespace longhaul

// Runs on several tasks that their caller cancels: RunOptions::cancellation.
#include "longhaul/cluster/master/cluster_session_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClusterCancellation : public ClusterSessionTest {
 public:
  ClusterCancellation() { start_all(); }
  void TestBody() override {}

  void cancel_in(Seconds time) {
    in(time, [this] { caller_.cancel("its client has gone"); });
  }
  RunOptions options() { return {.cancellation = &caller_}; }
  std::pair<int64_t, int64_t> steps() { return {toy(kPs).counts["v"], toy(kPs1).counts["w"]}; }

  // Message number `late` comes a second later, and the run is cancelled meanwhile. Returns how many messages there
  // were; `committed` receives whether the step was made.
  size_t cancel_during(uint64_t late, bool* committed) {
    const auto session = this->session();
    if (late > 0) network_.plan({.kind = NetworkFault::Kind::kDelay, .message = late, .time = Seconds{1}});
    cancel_in(Seconds{0.5});
    const Seconds began = now();
    bool has_ended_well = false;
    try {
      session->run(train_, {}, options());
      has_ended_well = true;
    } catch (const CancelledError& error) {
      EXPECT_THAT(error.what(), HasSubstr("its client has gone"));
      EXPECT_NE(error.failed_step().fate, StepFate::kNotKnown);
    }
    EXPECT_LE((now() - began).count(), 1.6);
    const size_t sent = network_.sent().size();
    expect_whole(*session, has_ended_well);
    *committed = has_ended_well;
    return sent;
  }

 private:
  void expect_whole(ClusterSession& session, bool is_made) {
    pass(Seconds{5});
    EXPECT_EQ(steps(), is_made ? std::pair(int64_t{1}, int64_t{1}) : std::pair(int64_t{0}, int64_t{0}));
    session.run(train_);
    EXPECT_EQ(toy(kPs).committed, toy(kPs1).committed);
    EXPECT_EQ(toy(kPs1).counts["w"], is_made ? 2 : 1);
    session.close();
    expect_nothing_left();
  }

 protected:
  Cancellation caller_;
};

TEST_F(ClusterCancellation, ARunThatWaitsEndsAtOnceOnAllItsTasks) {  // MA-9
  const auto session = this->session();
  session->run(train_);
  toy(kPs1).hangs = true;
  cancel_in(Seconds{1});
  const Seconds began = now();
  EXPECT_THAT(error_of<CancelledError>([&] { session->run(train_, {}, options()); }),
              AllOf(HasSubstr("its client has gone"), HasSubstr("The step was not committed")));
  EXPECT_NEAR((now() - began).count(), 1, 0.01);
  network_.clock().settle();
  EXPECT_EQ(toy(kPs).unfinished_steps(), 0u);
  EXPECT_EQ(toy(kPs1).unfinished_steps(), 0u);
  EXPECT_EQ(steps(), std::pair(int64_t{1}, int64_t{1}));
  toy(kPs1).hangs = false;
  session->run(train_);  // others go on
  EXPECT_EQ(steps(), std::pair(int64_t{2}, int64_t{2}));
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterCancellation, AStepOfOneTaskIsAskedWhatBecameOfIt) {
  const auto session = this->session();
  toy(kPs).hangs = true;
  cancel_in(Seconds{1});
  try {
    session->run(add_v_, {}, options());
    ADD_FAILURE() << "it was not cancelled";
  } catch (const CancelledError& error) {
    EXPECT_EQ(error.failed_step().fate, StepFate::kNotCommitted);
  }
  EXPECT_EQ(toy(kPs).counts["v"], 0);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterCancellation, AWaitForATaskThatIsAwayEnds) {
  network_.kill(kPs1);
  const auto session = this->session();
  cancel_in(Seconds{3});
  const Seconds began = now();
  EXPECT_THAT(error_of<CancelledError>([&] { session->run(train_, {}, options()); }), HasSubstr("its client has gone"));
  EXPECT_NEAR((now() - began).count(), 3, 0.01);
  start(kPs1);
  session->run(train_);
  EXPECT_EQ(steps(), std::pair(int64_t{1}, int64_t{1}));
}

TEST_F(ClusterCancellation, ARunThatIsCancelledBeforeItBeginsContactsNobody) {
  const auto session = this->session();
  caller_.cancel("its client has gone");
  EXPECT_THROW(session->run(train_, {}, options()), CancelledError);
  EXPECT_TRUE(network_.sent().empty());
}

TEST_F(ClusterCancellation, ASnapshotThatIsCancelledOpensItsGates) {
  const auto session = this->session();
  session->run(train_);
  session->run({read_v_, read_w_}, {}, {.snapshot = true});
  toy(kPs).hangs = true;
  cancel_in(Seconds{1});
  EXPECT_THROW(session->run({read_v_, read_w_}, {}, {.snapshot = true, .cancellation = &caller_}), CancelledError);
  pass(Seconds{1});
  EXPECT_EQ(toy(kPs).shut_doors(), 0u);
  EXPECT_EQ(toy(kPs1).shut_doors(), 0u);
  session->close();
  expect_nothing_left();
}

// Once all are prepared, the step takes place; the run ends as if nothing had been said.
TEST_F(ClusterCancellation, ACancelDuringTheCommitsComesTooLate) {
  const auto session = this->session();
  session->run(train_);
  // The parts and their answers, then the commits.
  network_.plan({.kind = NetworkFault::Kind::kDelay, .message = network_.sent().size() + 6, .time = Seconds{2}});
  cancel_in(Seconds{1});
  const Seconds began = now();
  session->run(train_, {}, options());
  EXPECT_NEAR((now() - began).count(), 2, 0.01);
  EXPECT_EQ(steps(), std::pair(int64_t{2}, int64_t{2}));
}

TEST_F(ClusterCancellation, CommitsThatTakeTooLongAreLeftToThemselves) {
  const auto session = this->session();
  session->run(train_);
  network_.plan({.kind = NetworkFault::Kind::kDelay, .message = network_.sent().size() + 6, .time = Seconds{20}});
  cancel_in(Seconds{1});
  const Seconds began = now();
  EXPECT_THAT(error_of<CancelledError>([&] { session->run(train_, {}, options()); }),
              HasSubstr("The step was committed"));
  EXPECT_NEAR((now() - began).count(), 11, 0.01);
  pass(Seconds{20});
  EXPECT_EQ(steps(), std::pair(int64_t{2}, int64_t{2}));
}

// A cancel during each message of a session's first step.
TEST(ClusterCancellations, AStepIsWholeOrNothingWhenACancelRacesItsCommit) {
  size_t messages = 0;
  bool is_made = false;
  {
    ClusterCancellation without;
    messages = without.cancel_during(0, &is_made);
    EXPECT_TRUE(is_made);
  }
  ASSERT_GE(messages, 16u);
  int made = 0, cancelled = 0;
  for (uint64_t late = 1; late <= messages; ++late) {
    SCOPED_TRACE(late);
    ClusterCancellation race;
    race.cancel_during(late, &is_made);
    ++(is_made ? made : cancelled);
  }
  EXPECT_GE(made, 4);       // the commits and their answers
  EXPECT_GE(cancelled, 8);  // all before
}

}  // namespace
}  // namespace longhaul

// What may happen while the copies of a snapshot are pending.
#include <ATen/record_function.h>

#include "longhaul/binding/overlap/overlap_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void usual(OverlappedProgram& program) {
  program.update();
}

bool libtorch_calls_back() {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

struct OverlappedSnapshotTest : ::testing::Test {
  OverlappedProgram program{usual};
};

TEST_F(OverlappedSnapshotTest, NothingIsCalledBackButWhileCopiesArePending) {
  EXPECT_FALSE(libtorch_calls_back());
  program.snapshot();
  EXPECT_TRUE(libtorch_calls_back()) << "the proof";
  program.train();
  EXPECT_FALSE(libtorch_calls_back());
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  EXPECT_TRUE(libtorch_calls_back());
  program.copier.let_copy();
  snapshot.get();
  EXPECT_FALSE(libtorch_calls_back());
}

TEST_F(OverlappedSnapshotTest, TheStepGoesOnWhileTheCopiesArePending) {
  program.prove();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  program.train(3);
  EXPECT_EQ(snapshot.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  program.copier.let_copy();
  snapshot.get();
}

TEST_F(OverlappedSnapshotTest, ThoseBeforeTheFirstStepAreCopiedAtOnceAndTheStepProvesTheLast) {
  const auto before = program.state();
  expect_same(program.snapshot(), before);
  expect_same(program.snapshot(), before);
  EXPECT_EQ(program.copier.asked(), 0);
  program.train();
  auto third = program.start_snapshot();
  program.copier.wait_until_asked(third);
  program.copier.let_copy();
  third.get();
}

TEST_F(OverlappedSnapshotTest, TwoAtOnceAreEachOfTheirMoment) {
  program.prove();
  const auto before_first = program.state();
  auto first = program.start_snapshot();
  program.copier.wait_until_asked(first);
  program.train();
  const auto before_second = program.state();
  auto second = program.start_snapshot();
  program.copier.wait_until_asked(second, 2);
  program.train();
  program.copier.let_copy();
  expect_same(first.get(), before_first);
  expect_same(second.get(), before_second);
}

TEST_F(OverlappedSnapshotTest, TheThreadThatTrainsCopiesItself) {
  program.prove();
  expect_same(program.session->run(program.fetches, {}, {.snapshot = true}), program.state());
  EXPECT_EQ(program.copier.asked(), 0);
}

TEST_F(OverlappedSnapshotTest, AStepThatFailsHalfwayLeavesTheOneBeforeAsItWas) {
  program.prove();
  const auto before = program.state();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  program.step = [](OverlappedProgram& failing) {
    failing.update();
    throw UnavailableError("the power went");
  };
  EXPECT_THROW(program.train(), UnavailableError);
  program.copier.let_copy();
  expect_same(snapshot.get(), before);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.snapshot(); }), HasSubstr("a step failed after"));
}

TEST_F(OverlappedSnapshotTest, AStepThatFailsDoesNotProve) {
  program.snapshot();
  const auto step = std::exchange(program.step, [](OverlappedProgram&) { throw UnavailableError("no input"); });
  EXPECT_THROW(program.train(), UnavailableError);
  EXPECT_FALSE(libtorch_calls_back());
  program.step = step;
  program.prove();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  program.copier.let_copy();
  snapshot.get();
}

TEST_F(OverlappedSnapshotTest, ARestoreDoesNotReachIt) {
  const testing::TemporaryDirectory directory;
  Saver saver({.graph = &program.graph});
  program.prove();
  const std::string saved = saver.save(*program.session, directory.file("m"));
  program.train();
  const auto before = program.state();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  saver.restore(*program.session, saved);
  program.copier.let_copy();
  expect_same(snapshot.get(), before);
}

TEST_F(OverlappedSnapshotTest, ReplacedMemoryIsKeptUntilItIsCopied) {
  program.prove();
  const auto before = program.state();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  for (const torch::Tensor& parameter : program.net->parameters()) parameter.set_data(torch::zeros_like(parameter));
  program.optimizer->state().clear();
  program.copier.let_copy();
  expect_same(snapshot.get(), before);
}

TEST_F(OverlappedSnapshotTest, TheEndOfTheSessionAndOfTheProgramWaitForIt) {
  program.prove();
  const auto before = program.state();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  auto closed = std::async(std::launch::async, [&] { program.session->close(); });
  program.copier.let_copy();
  closed.get();
  try {
    expect_same(snapshot.get(), before);
  } catch (const Error&) {  // the end came first
  }
}

TEST_F(OverlappedSnapshotTest, AStepWithoutAWriteLeavesTheProofToTheNext) {
  program.step = [](OverlappedProgram&) {};
  program.prove();
  program.train(50);
  EXPECT_TRUE(libtorch_calls_back());
  program.step = usual;
  program.train();
  EXPECT_FALSE(libtorch_calls_back());
}

TEST_F(OverlappedSnapshotTest, AProofThatFindsNoWriteIsGivenUp) {
  program.step = [](OverlappedProgram&) {};
  program.prove();
  program.train(100);
  EXPECT_FALSE(libtorch_calls_back());
}

TEST_F(OverlappedSnapshotTest, WithoutAnnouncementsTrainingWaits) {
  const Warnings warnings;
  program.prove();
  const auto before = program.state();
  auto snapshot = program.start_snapshot();
  program.copier.wait_until_asked(snapshot);
  at::clearGlobalCallbacks();
  program.copier.let_copy();
  expect_same(snapshot.get(), before);
  EXPECT_THAT(warnings.seen(), ::testing::ElementsAre(HasSubstr("libtorch no longer announces")));
}

TEST(OverlappedSnapshot, IsCopiedAtOnceIfItIsSmall) {
  OverlappedProgram program(usual, plain_sgd, {}, /*width=*/16);
  program.snapshot();
  EXPECT_FALSE(libtorch_calls_back());
  program.train();
  expect_same(program.snapshot(), program.state());
  EXPECT_EQ(program.copier.asked(), 0);
}

TEST(OverlappedSnapshot, IsCopiedAtOnceIfTheProgramSaysSo) {
  OverlappedProgram program(usual, default_adam, {.overlap_snapshots = false});
  program.prove();
  expect_same(program.snapshot(), program.state());
  EXPECT_EQ(program.copier.asked(), 0);
}

TEST(OverlappedSnapshot, IsCopiedByAThreadOfItsOwnOrTheCallers) {
  for (const bool by_the_caller : {false, true}) {
    PendingCopy copy(PendingCopy::Kind::kLater);
    const at::Tensor source = torch::rand({1 << 20}), destination = torch::empty({1 << 20});
    copy.add("a", source, destination);
    copy.close();
    if (by_the_caller) {
      copy.finish();
    } else {
      OverlappedCopies::copy_during_training(copy);
    }
    EXPECT_TRUE(copy.wait_until_copied(Seconds{0}));
    EXPECT_TRUE(torch::equal(source, destination));
  }
}

}  // namespace
}  // namespace longhaul

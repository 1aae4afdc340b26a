// What a monitored session does about a loss that goes bad, on sessions of the runtime, which keep values of the
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_training_session.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MonitoredDivergenceTest : public ::testing::Test {
 protected:
  // A process that makes steps up to `last`, the i-th with this loss, and dies there or comes to its end. Checkpoints
  // are taken at every third step, and at the end.
  void run(int64_t last, const std::function<double(int64_t)>& loss_of, bool dies = false) {
    Graph graph;
    Scope root(graph);
    const Variable step = ops::create_global_step(root);
    const Variable rate = ops::variable(root, "rate", Tensor::scalar(1.0f));
    const Operation halve = ops::assign(root, rate, ops::mul(root, rate, ops::constant(root, 0.5f))).op();
    const Output loss = ops::placeholder(root, kFloat, {}, "loss");
    const Operation train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
    options.graph = &graph;
    options.failures.loss = loss;
    options.failures.divergence.on_rollback = [&](Session& session, const Rollback& rollback) {
      told.push_back(rollback.to_text());
      session.run(halve);
    };
    const auto value_of = [](MonitoredSession& session, const Fetch& fetch) {
      return session.run_step_fn([&](StepContext& context) { return context.session().run(fetch); });
    };
    made.clear();
    monitored_training_session(options, [&](MonitoredSession& session) {
      for (int64_t i = value_of(session, step).item<int64_t>(); value_of(session, step).item<int64_t>() < last; ++i) {
        const auto before = value_of(session, step).item<int64_t>();
        const auto fed = static_cast<float>(loss_of(i));
        const std::vector<Tensor> results = session.run({train, loss}, {{loss, Tensor::scalar(fed)}});
        EXPECT_EQ(std::isnan(results[1].item<float>()), std::isnan(fed)) << "it returns what it has computed";
        made.push_back(before);
      }
      rate_at_end = value_of(session, rate).item<float>();
      if (dies) throw InternalError("crash");
    });
  }
  static double bad_in_7(int64_t i) { return i == 7 ? std::numeric_limits<double>::quiet_NaN() : 1; }
  static double good(int64_t) { return 1; }
  std::string at(int64_t step) { return directory.file("model.ckpt-" + std::to_string(step)); }
  bool exists(int64_t step) { return checkpoint_exists(FileSystem::real(), at(step)); }

  testing::TemporaryDirectory directory;
  MonitoredTrainingSessionOptions options{
      .checkpoint_dir = directory.path(),
      .save_checkpoint_steps = int64_t{3},
      .log_step_count_steps = 0,
      .failures = {.divergence = {.watch = {.window = 8, .warm_up = 4, .in_a_row = 1}, .margin_steps = 2}}};
  std::vector<std::string> told;
  std::vector<int64_t> made;  // the step before each run
  float rate_at_end = 0;
};

TEST_F(MonitoredDivergenceTest, TheModelGoesBackAndTheNextRunContinuesThere) {
  run(10, bad_in_7);
  ASSERT_EQ(told.size(), 1U);
  const Rollback rollback = *Rollback::from_text(told[0]);
  EXPECT_EQ(rollback.diverged_step, 7);
  EXPECT_LE(rollback.restored_step, 5);
  std::vector<int64_t> expected{0, 1, 2, 3, 4, 5, 6, 7};
  for (int64_t step = rollback.restored_step; step < 10; ++step) expected.push_back(step);
  EXPECT_EQ(made, expected);
  EXPECT_EQ(rate_at_end, 0.5f);
  run(12, good);
  EXPECT_EQ(rate_at_end, 0.5f) << "the checkpoint has it";
  EXPECT_EQ(told.size(), 1U);
  EXPECT_THAT(made, ElementsAre(10, 11));
}

TEST_F(MonitoredDivergenceTest, ARestartFromBeforeCallsAgain) {
  EXPECT_THROW(run(8, bad_in_7, /*dies=*/true), InternalError);
  ASSERT_EQ(told.size(), 1U);
  const int64_t before = Rollback::from_text(told[0])->restored_step;
  for (int64_t step = before + 1; step < 12; ++step) {
    if (exists(step)) remove_checkpoint(FileSystem::real(), at(step));
  }
  run(before + 2, good);
  EXPECT_THAT(told, ElementsAre(told[0], told[0]));
  EXPECT_EQ(made.front(), before);
  EXPECT_EQ(rate_at_end, 0.5f);
}

TEST_F(MonitoredDivergenceTest, TooManyEndTheTrainingWithoutACheckpointAndARestartGoesBack) {
  options.failures.divergence.max_rollbacks = 0;
  EXPECT_THROW(run(10, bad_in_7), DivergedError);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_FALSE(exists(8)) << "none is taken at the end";
  run(10, good);
  EXPECT_LE(made.front(), 5);
}

TEST_F(MonitoredDivergenceTest, TheLogSaysThatTheModelWentBackAndNotThatSomethingFailed) {
  std::vector<std::string> said;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { said.push_back(message); });
  run(10, bad_in_7);
  set_log_sink(before);
  EXPECT_THAT(said, Contains(HasSubstr("after the loss of step 7 went bad")));
  for (const char* wrong : {"failed", "ends with an error", "made again"}) {
    EXPECT_THAT(said, Not(Contains(HasSubstr(wrong)))) << wrong;
  }
}

TEST_F(MonitoredDivergenceTest, AFullDiskAtTheMomentOfTheRollbackEndsNothing) {
  testing::FaultyFileSystem files;
  options.files = &files;
  run(10, [&](int64_t i) {
    if (i == 7) files.fail_writes_after(0);
    if (i == 8) files.heal();
    return bad_in_7(i);
  });
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(made.back(), 9);
  const std::string journal = read_file(FileSystem::real(), journal_path(directory.path()));
  EXPECT_EQ(parse_run_journal(journal).history.rollbacks().count(), 1) << "there was room for it in the end";
}

TEST_F(MonitoredDivergenceTest, ARollbackIsNoLostSession) {
  options.failures.restart = {.max_restarts = 0, .backoff = Seconds{3600}};
  run(10, bad_in_7);
  EXPECT_EQ(made.back(), 9);
}

TEST_F(MonitoredDivergenceTest, WhatCannotGoBackIsRefused) {
  options.chief.keep_journal = false;
  EXPECT_THROW(run(3, good), InvalidArgumentError);
  options.chief.keep_journal = true;
  options.failures.divergence.margin_steps = -1;
  EXPECT_THROW(run(3, good), InvalidArgumentError);
}

TEST_F(MonitoredDivergenceTest, ASecondSessionOnTheGraphIsRefusedAndAnOldHookIsNotUsed) {
  Graph graph;
  Scope root(graph);
  const Variable step = ops::create_global_step(root);
  const Output loss = ops::placeholder(root, kFloat, {}, "loss");
  const Operation train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
  options.graph = &graph;
  options.failures.loss = loss;
  const auto train_once = [&](MonitoredSession& session) { session.run(train, {{loss, Tensor::scalar(1.0f)}}); };
  monitored_training_session(options, train_once);
  EXPECT_THROW(monitored_training_session(options, train_once), AlreadyExistsError);
  options.failures.loss = {};
  monitored_training_session(options, train_once);
  EXPECT_TRUE(exists(2));
}

TEST_F(MonitoredDivergenceTest, TensorBoardShowsOneCurve) {
  run(10, bad_in_7);
  ASSERT_EQ(told.size(), 1U);
  const auto curves = independent::CurveReader::read(directory.path(), independent::Rule::kStart);
  EXPECT_THAT(curves.at(kRollbacksTag).steps(), ElementsAre(Rollback::from_text(told[0])->restored_step));
}

}  // namespace
}  // namespace longhaul

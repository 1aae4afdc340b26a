// What a Supervisor does about a loss that goes bad, on sessions of the runtime, which keep values of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kBadLoss = std::numeric_limits<float>::quiet_NaN();

float good_loss(int64_t) {
  return 1;
}

template <typename Expected>
std::string words_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

class SupervisorDivergenceTest : public ::testing::Test {
 protected:
  // A program that trains up to `last` in the loop that TensorFlow's have: a session that is lost is followed by
  // another. The i-th step in all has this loss. It saves after every third step, and at the end.
  void run(int64_t last, const std::function<float(int64_t)>& loss_of, bool swallows = false) {
    Graph graph;
    Scope root(graph);
    const Variable step = ops::create_global_step(root);
    const Variable rate = ops::variable(root, "rate", Tensor::scalar(1.0f));
    const Operation halve = ops::assign(root, rate, ops::mul(root, rate, ops::constant(root, 0.5f))).op();
    const Operation train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
    options.graph = &graph;
    options.services.divergence->on_rollback = [&](Session& session, const Rollback& rollback) {
      told.push_back(rollback.to_text());
      session.run(halve);
    };
    made.clear();
    Supervisor sv(options);
    int64_t i = 0;
    const auto body = [&](Session& session) {
      for (int64_t now = read_global_step(session, step); now < last && !sv.should_stop(); ++now) {
        session.run(train);
        made.push_back(now);
        if (before_look) before_look(sv, session, now);
        try {
          sv.look_at_loss(session, loss_of(i++));
        } catch (const Error&) {
          if (!swallows) throw;
        }
        if ((now + 1) % 3 == 0 && !sv.should_stop()) sv.saver()->save(session, sv.save_path(), step);
      }
      rate_at_end = session.run(rate).item<float>();
    };
    while (true) {
      try {
        return sv.managed_session(body);
      } catch (const AbortedError&) {
        ++lost_sessions;
      }
    }
  }
  static float bad_in_7(int64_t i) { return i == 7 ? kBadLoss : 1; }
  RunHistory journal() const {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history;
  }

  testing::TemporaryDirectory directory;
  SupervisorOptions options{.logdir = directory.path(),
                            .save_model_secs = Seconds{0},
                            .services = {.divergence = DivergenceOptions{
                                             .watch = {.window = 8, .warm_up = 4, .in_a_row = 1}, .margin_steps = 2}}};
  std::vector<std::string> told;
  std::vector<int64_t> made;  // the step before each
  std::function<void(Supervisor&, Session&, int64_t)> before_look;
  float rate_at_end = 0;
  int lost_sessions = 0;
};

TEST_F(SupervisorDivergenceTest, TheNextSessionRestoresTheLastGoodCheckpoint) {
  run(10, bad_in_7);
  EXPECT_THAT(told, ElementsAre("1 7 8 3 nan 1 model.ckpt-3"));
  EXPECT_THAT(made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(lost_sessions, 1);
  EXPECT_EQ(rate_at_end, 0.5f);
  EXPECT_EQ(journal().runs().size(), 1u) << "the same run goes on";
  run(12, good_loss);
  EXPECT_EQ(rate_at_end, 0.5f) << "the checkpoint has it";
  EXPECT_EQ(told.size(), 1u);
  EXPECT_THAT(made, ElementsAre(10, 11));
}

TEST_F(SupervisorDivergenceTest, AFullDiskAtTheMomentOfTheRollbackEndsNothing) {
  testing::FaultyFileSystem files;
  options.files = &files;
  const auto full_in_7 = [&](int64_t i) {
    if (i == 7) files.fail_writes_after(0);
    if (i == 8) files.heal();
    return bad_in_7(i);
  };
  run(10, full_in_7);
  EXPECT_EQ(lost_sessions, 1);
  EXPECT_EQ(made.back(), 9);
  EXPECT_EQ(journal().rollbacks().count(), 1);
}

TEST_F(SupervisorDivergenceTest, AProgramThatSwallowsTheErrorGoesBackAllTheSame) {
  run(10, bad_in_7, /*swallows=*/true);
  EXPECT_EQ(lost_sessions, 1);
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(made.back(), 9);
}

TEST_F(SupervisorDivergenceTest, TooManyEndTheTrainingWithoutACheckpointAndARestartGoesBack) {
  options.services.divergence->max_rollbacks = 0;
  EXPECT_THROW(run(10, bad_in_7), DivergedError);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_FALSE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-8"))) << "none is taken at the end";
  run(10, good_loss);
  EXPECT_EQ(made.front(), 3);
}

// By a service, before the program has looked at the loss.
TEST_F(SupervisorDivergenceTest, WhatWasSavedSinceTheBadStepIsNotRestored) {
  options.services.divergence->margin_steps = 0;
  before_look = [&](Supervisor& sv, Session& session, int64_t now) {
    if (now == 9 && told.empty()) sv.saver()->save(session, sv.save_path(), now + 1);
  };
  run(12, [](int64_t i) { return i == 9 ? kBadLoss : 1.0f; });
  EXPECT_THAT(told, ElementsAre("1 9 10 9 nan 1 model.ckpt-9"));
  EXPECT_THAT(made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11));
}

TEST_F(SupervisorDivergenceTest, WhatCannotGoBackIsRefused) {
  options.chief.keep_journal = false;
  EXPECT_THAT(words_of<Error>([&] { run(3, good_loss); }), HasSubstr("keep_journal"));
  options.chief.keep_journal = true;
  options.services.divergence->margin_steps = -1;
  EXPECT_THROW(run(3, good_loss), InvalidArgumentError);
  options.services.divergence->margin_steps = 1;
  options.logdir.clear();
  EXPECT_THAT(words_of<InvalidArgumentError>([&] { run(3, good_loss); }), HasSubstr("set logdir"));
  options.services.divergence.reset();
  Graph graph;
  Scope root(graph);
  ops::create_global_step(root);
  options.graph = &graph;
  Supervisor sv(options);
  EXPECT_THAT(words_of<FailedPreconditionError>(
                  [&] { sv.managed_session([&](Session& session) { sv.look_at_loss(session, 1); }); }),
              HasSubstr("set ServiceOptions::divergence"));
}

}  // namespace
}  // namespace longhaul

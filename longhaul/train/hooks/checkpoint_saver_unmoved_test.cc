// What a CheckpointSaverHook does where the step stands still.
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/hooks/checkpoint_saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A model whose variable changes while the step stands still.
class CheckpointSaverUnmoved : public CheckpointSaverTest {
 protected:
  CheckpointSaverUnmoved() {
    set(1);
    with.saver = both;
    with.listeners = {counts};
    with.save_steps.reset();
    with.save_secs = Seconds{600};
  }
  void set(float value) { session->run(v.initializer(), {{v.initial_value(), Tensor::scalar(value)}}); }
  float saved_value(int64_t at) {
    return BundleReader(FileSystem::real(), directory.file("model.ckpt-" + std::to_string(at))).read("v").item<float>();
  }
  void run_something(SessionRunHook& hook) { run(hook, ops::no_op(root)); }

  Variable v = ops::variable(root, "v", Tensor::scalar(1.0f));
  std::shared_ptr<Saver> both = std::make_shared<Saver>(SaverOptions{.graph = &graph, .name = "both", .clock = &clock});
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  CheckpointSaverHookOptions with = every(1);
};

TEST_F(CheckpointSaverUnmoved, IsSavedAtTheEnd) {  // unlike HC-5
  CheckpointSaverHook hook(with);
  begin(hook);
  train(hook);
  set(8);
  const LogRecorder log;
  hook.end(*session);
  EXPECT_EQ(saved_value(1), 8);
  EXPECT_THAT(counts->all(), ElementsAre(1, 2, 2, 1));
  EXPECT_THAT(log.text(), HasSubstr("Saving checkpoints for 1 into"));
}

TEST_F(CheckpointSaverUnmoved, IsSavedAsTimePasses) {
  CheckpointSaverHook hook(with);
  start(hook);
  set(8);
  run_something(hook);
  EXPECT_EQ(saved_value(0), 1);
  clock.advance(Seconds{600});
  run_something(hook);
  EXPECT_EQ(saved_value(0), 8);
  EXPECT_THAT(counts->all(), ElementsAre(1, 2, 2, 0));
  const LogRecorder log;
  clock.advance(Seconds{600});
  run_something(hook);
  hook.end(*session);
  EXPECT_THAT(counts->all(), ElementsAre(1, 4, 4, 1)) << "what they swap in is out again";
  EXPECT_THAT(log.text(), Not(HasSubstr("Saving")));
}

TEST_F(CheckpointSaverUnmoved, IsSavedAfterAThousandRunsAtLeast) {
  with.save_secs.reset();
  with.save_steps = 1;
  CheckpointSaverHook hook(with);
  start(hook);
  set(8);
  for (int i = 0; i < 999; ++i) run_something(hook);
  EXPECT_EQ(saved_value(0), 1);
  run_something(hook);
  EXPECT_EQ(saved_value(0), 8);
}

TEST_F(CheckpointSaverUnmoved, IsNotSavedAtOnceWhereItWasRestored) {
  both->restore(*session, both->save(*session, directory.file("model.ckpt"), step));
  CheckpointSaverHook hook(with);
  start(hook);
  EXPECT_EQ(session->snapshot_runs(), 1) << "it does not even look";
  EXPECT_THAT(counts->all(), ElementsAre(1, 1, 1, 0)) << "there is a checkpoint of this step";
}

// Has 1000 more in `v` while a checkpoint is taken, as the average of a variable would be swapped in.
class Swaps : public CheckpointSaverListener {
 public:
  explicit Swaps(Variable v) : v_(std::move(v)) {}
  void before_save(Session& session, int64_t) override { add(session, 1000); }
  bool after_save(Session& session, int64_t) override {
    add(session, -1000);
    return false;
  }

 private:
  void add(Session& session, float more) {
    const float now = session.run(v_).item<float>();
    session.run(v_.initializer(), {{v_.initial_value(), Tensor::scalar(now + more)}});
  }
  const Variable v_;
};

TEST_F(CheckpointSaverUnmoved, KeepsWhatAListenerHasSwappedIn) {
  with.listeners = {std::make_shared<Swaps>(v)};
  CheckpointSaverHook hook(with);
  start(hook);
  clock.advance(Seconds{600});
  train(hook);
  EXPECT_EQ(saved_value(1), 1001);
  hook.end(*session);
  EXPECT_EQ(saved_value(1), 1001);
  EXPECT_EQ(session->run(v).item<float>(), 1);
}

TEST_F(CheckpointSaverUnmoved, WhatAListenerHasSwappedInIsOutAgainAfterASaveThatFails) {
  testing::FaultyFileSystem files;
  with.saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .name = "faulty", .files = &files});
  with.listeners = {std::make_shared<Swaps>(v)};
  CheckpointSaverHook hook(with);
  files.fail_writes_after(0);
  start(hook);
  EXPECT_EQ(session->run(v).item<float>(), 1);
  files.heal();
  hook.end(*session);
  EXPECT_EQ(saved_value(0), 1001);
  EXPECT_EQ(session->run(v).item<float>(), 1);
}

}  // namespace
}  // namespace longhaul

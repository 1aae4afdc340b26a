#include "longhaul/train/onlookers/newest_weights.h"

#include <thread>

#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class NewestWeightsTest : public ::testing::Test {
 protected:
  NewestWeightsTest() { session_->run(ops::global_variables_initializer(root_)); }
  void make_step() { session_->run(train_); }
  WeightsPublisherOptions on_demand() const { return {.every_n_steps = 0}; }
  static float w_of(const std::shared_ptr<const Weights>& weights) { return weights->at("w").item<float>(); }

  Graph graph_;
  Scope root_{graph_};
  Variable w_ = ops::variable(root_, "w", Tensor::scalar(0.0f));
  Variable unseen_ = ops::variable(root_, "unseen", Tensor::scalar(1.0f), {.trainable = false});
  Variable step_ = ops::create_global_step(root_);
  Operation train_ = ops::group(root_, {ops::assign_add(root_, w_, ops::constant(root_, 1.0f)).op(),
                                        ops::assign_add(root_, step_, ops::constant(root_, int64_t{1})).op()});
  std::unique_ptr<testing::ScriptedSession> session_ = make_scripted_session(graph_);
  NewestWeights newest_;
};

TEST_F(NewestWeightsTest, ReadersKeepWhatTheyHave) {
  WeightsPublisher publisher(newest_, on_demand());
  publisher.begin(*session_);
  EXPECT_EQ(newest_.get(), nullptr);
  make_step();
  const auto first = publisher.publish();
  EXPECT_EQ(newest_.get(), first);
  EXPECT_EQ(first->step, 1);
  EXPECT_EQ(first->version, 1);
  EXPECT_EQ(w_of(first), 1);
  make_step();
  make_step();
  const auto second = publisher.publish();
  EXPECT_EQ(second->step, 3);
  EXPECT_EQ(second->version, 2);
  EXPECT_EQ(w_of(second), 3);
  EXPECT_EQ(w_of(first), 1);
  EXPECT_EQ(first->tensors.size(), 1u);  // the trainable ones
  EXPECT_THROW(static_cast<void>(first->at("unseen")), NotFoundError);
}

TEST_F(NewestWeightsTest, VariablesAreChosen) {
  WeightsPublisher publisher(newest_, {.variables = {unseen_}, .every_n_steps = 0});
  publisher.begin(*session_);
  EXPECT_EQ(publisher.publish()->at("unseen").item<float>(), 1);
}

TEST(WeightsTest, PartsHaveTheRestOfTheNames) {
  const Weights weights{.tensors = {{"net.0", Tensor::scalar(1.0f)}, {"critic.0", Tensor::scalar(2.0f)}}};
  const auto part = weights.part("critic.");
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].first, "0");
  EXPECT_EQ(part[0].second.item<float>(), 2);
  EXPECT_THROW(weights.part("actor."), NotFoundError);
}

TEST_F(NewestWeightsTest, AWaitEndsWithANewVersionATimeoutOrTheEnd) {
  EXPECT_EQ(newest_.wait_for_newer(nullptr, Seconds{0.01}), nullptr);
  EXPECT_FALSE(newest_.is_closed());
  std::thread trainer([this] { newest_.publish({.step = 5}); });
  const auto first = newest_.wait_for_newer(nullptr, Seconds{60});
  trainer.join();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->step, 5);
  EXPECT_EQ(newest_.wait_for_newer(first, Seconds{0.01}), nullptr);
  newest_.publish({.step = 6});
  std::thread closer([this] { newest_.close(); });
  const auto second = newest_.wait_for_newer(first, Seconds{60});  // what is there is handed out, closed or not
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(newest_.wait_for_newer(second, Seconds{60}), nullptr);
  closer.join();
  EXPECT_TRUE(newest_.is_closed());
}

TEST_F(NewestWeightsTest, ThePublishersEndIsTheEnd) {
  {
    const WeightsPublisher publisher(newest_, on_demand());
  }
  EXPECT_TRUE(newest_.is_closed());
  const WeightsPublisher next(newest_, on_demand());
  EXPECT_FALSE(newest_.is_closed());
}

TEST_F(NewestWeightsTest, MisuseIsRefused) {
  EXPECT_THROW(WeightsPublisher(newest_, {.every_n_steps = -1}), InvalidArgumentError);
  WeightsPublisher publisher(newest_, on_demand());
  EXPECT_THROW(publisher.publish(), FailedPreconditionError);
  Graph empty;
  const auto session = make_scripted_session(empty);
  EXPECT_THROW(publisher.begin(*session), InvalidArgumentError);
  ops::create_global_step(Scope(empty));
  EXPECT_THROW(publisher.begin(*session), InvalidArgumentError);
  EXPECT_THROW(publisher.publish(), FailedPreconditionError);
}

TEST_F(NewestWeightsTest, ASessionThatDoesNotTellOfItsStepsIsRefusedWithARemedy) {
  if (testing::ScriptedSession::runs_on_engine()) return;  // that one does
  WeightsPublisher publisher(newest_, {.every_n_steps = 1});
  try {
    publisher.begin(*session_);
    FAIL();
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("set every_n_steps = 0"));
  }
}

TEST_F(NewestWeightsTest, NewOnesComeWithTheSteps) {
  if (!testing::ScriptedSession::runs_on_engine()) return;
  WeightsPublisher publisher(newest_, {.every_n_steps = 2});
  publisher.begin(*session_);
  auto weights = newest_.wait_for_newer(nullptr, Seconds{60});
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->step, 0);
  for (int i = 0; i < 20; ++i) {
    make_step();
    make_step();
    const auto newer = newest_.wait_for_newer(weights, Seconds{60});
    ASSERT_NE(newer, nullptr);
    EXPECT_GE(newer->step, weights->step + 2);
    EXPECT_EQ(w_of(newer), static_cast<float>(newer->step));
    weights = newer;
  }
}

TEST_F(NewestWeightsTest, TheyAreOfOneStepWhileTrainingGoesOn) {
  if (!testing::ScriptedSession::runs_on_engine()) return;
  WeightsPublisher publisher(newest_, {.every_n_steps = 1});
  publisher.begin(*session_);
  std::atomic<bool> stop{false};
  std::thread trainer([&] {
    while (!stop) make_step();
  });
  std::shared_ptr<const Weights> weights;
  for (int i = 0; i < 50; ++i) {
    const auto newer = newest_.wait_for_newer(weights, Seconds{60});
    ASSERT_NE(newer, nullptr);
    EXPECT_EQ(w_of(newer), static_cast<float>(newer->step));
    weights = newer;
  }
  stop = true;
  trainer.join();
}

TEST_F(NewestWeightsTest, AFailedSnapshotIsToldOfAndTriedAgain) {
  WeightsPublisher publisher(newest_, on_demand());
  publisher.begin(*session_);
  session_->close();
  EXPECT_THROW(publisher.publish(), Error);
  EXPECT_EQ(newest_.get(), nullptr);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/train/hooks/nan_tensor_hook.h"

#include <limits>

#include "longhaul/train/coordination/lost_session.h"
#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NanTensorTest : public HookTest {
 protected:
  void set_loss(float value) { session->run(loss_.initializer(), {{loss_.initial_value(), Tensor::scalar(value)}}); }
  const Variable loss_ = ops::variable(root, "loss", Tensor::scalar(1.0f));
  const float nan_ = std::numeric_limits<float>::quiet_NaN();
  const float infinity_ = std::numeric_limits<float>::infinity();
};

TEST_F(NanTensorTest, AFiniteLossIsNoMatter) {
  NanTensorHook hook(loss_);
  start(hook);
  set_loss(-3);
  EXPECT_FALSE(train(hook));
}

TEST_F(NanTensorTest, ANanEndsTheTrainingWithTheStepAndWhatTheHookWasTold) {  // HO-5
  NanTensorHook hook(loss_);
  start(hook);
  set_loss(nan_);
  set_step(41);
  const LogRecorder log;
  EXPECT_THAT(error_of([&] { train(hook); }),
              AllOf(HasSubstr("NaN loss during training."), HasSubstr("loss/read:0, in the run after global step 41"),
                    HasSubstr("fails because")));
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("Model diverged with loss = NaN"));
  EXPECT_THROW(train(hook), NanLossDuringTrainingError);
}

TEST_F(NanTensorTest, AnInfiniteLossDoesTheSame) {  // unlike HO-5
  NanTensorHook hook("loss:0");
  start(hook);
  set_loss(-infinity_);
  EXPECT_THAT(error_of([&] { train(hook); }), HasSubstr("loss = -inf (loss:0"));
  EXPECT_THROW(train(hook), NanLossDuringTrainingError);
}

TEST_F(NanTensorTest, AnInfiniteLossMayPass) {  // HO-5
  NanTensorHook hook("loss:0", {.let_infinity_pass = true});
  start(hook);
  set_loss(infinity_);
  EXPECT_FALSE(train(hook));
  set_loss(nan_);
  EXPECT_THROW(train(hook), NanLossDuringTrainingError);
}

TEST_F(NanTensorTest, ItMayStopTheTrainingInstead) {  // HO-5
  NanTensorHook hook(loss_, {.fail_on_nan_loss = false});
  start(hook);
  set_loss(nan_);
  const LogRecorder log;
  EXPECT_TRUE(train(hook));
  EXPECT_EQ(log.text(LogLevel::kError), "");
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("Model diverged with loss = NaN"), HasSubstr("fail_on_nan_loss = false")));
}

TEST(NanTensor, AGraphNeedsNoGlobalStep) {
  Graph graph;
  NanTensorHook hook(ops::constant(Scope(graph), std::numeric_limits<float>::quiet_NaN(), "loss"));
  hook.begin(graph);
  const auto session = make_scripted_session(graph);
  const SessionRunArgs nothing;
  SessionRunContext context(*session, nothing);
  const std::vector<Tensor> results = session->run(hook.before_run(context)->fetches);
  EXPECT_THAT(error_of([&] { hook.after_run(context, {.results = results}); }), HasSubstr("loss = NaN (loss:0)."));
}

TEST(NanTensor, ADivergedModelIsNotTriedAgain) {
  EXPECT_FALSE(is_lost_session(NanLossDuringTrainingError("NaN loss during training.")));
}

}  // namespace
}  // namespace longhaul

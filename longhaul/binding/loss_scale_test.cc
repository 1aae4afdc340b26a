// 16-bit training: the scale of the loss, and autocast, go on where they were.
#include "longhaul/binding/loss_scale.h"

#include <limits>

#include "longhaul/binding/autocast.h"
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A weight whose gradient a test sets.
struct OneWeight {
  explicit OneWeight(const LossScaleOptions& options = {}) : scale(options) {}
  bool step_with(float gradient) {
    weight.mutable_grad() = at::full({1}, gradient);
    const bool stepped = scale.step(sgd);
    scale.update();
    return stepped;
  }
  at::Tensor weight = at::ones({1}).requires_grad_();
  torch::optim::SGD sgd{{weight}, 1.0};
  LossScale scale;
};

TEST(LossScale, DividesTheGradientsAndSteps) {
  OneWeight one({.initial_scale = 8});
  EXPECT_EQ(one.scale.scale(at::full({1}, 3.0)).item<float>(), 24);
  EXPECT_TRUE(one.step_with(4));
  EXPECT_EQ(one.weight.item<float>(), 0.5);
}

TEST(LossScale, LeavesOutAStepWithAnInfinityOrNaNAndShrinks) {
  OneWeight one({.initial_scale = 8});
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(one.step_with(bad));
    EXPECT_EQ(one.weight.item<float>(), 1);
  }
  EXPECT_EQ(one.scale.current(), 1);
}

TEST(LossScale, GrowsAfterAnIntervalWithoutAny) {
  OneWeight one({.initial_scale = 8, .growth_interval = 2});
  std::vector<double> scales;
  for (const float gradient : {1.0f, 1.0f, 1.0f, kInfinity, 1.0f, 1.0f}) {
    one.step_with(gradient);
    scales.push_back(one.scale.current());
  }
  EXPECT_THAT(scales, ElementsAre(8, 16, 16, 8, 8, 16));
}

TEST(LossScale, DoesNotGrowBeyondAFloat) {
  OneWeight one({.initial_scale = 0x1p127, .growth_interval = 1});
  one.step_with(1);
  EXPECT_EQ(one.scale.current(), 0x1p127);
}

TEST(LossScale, UnscalesOnceForClipping) {
  OneWeight one({.initial_scale = 8});
  one.weight.mutable_grad() = at::full({1}, 4.0f);
  one.scale.unscale(one.sgd);
  EXPECT_EQ(one.weight.grad().item<float>(), 0.5);
  EXPECT_TRUE(one.scale.step(one.sgd));
  EXPECT_EQ(one.weight.item<float>(), 0.5);
}

TEST(LossScale, CallsInAWrongOrderAreRefused) {
  OneWeight one;
  one.weight.mutable_grad() = at::ones({1});
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { one.scale.update(); }), HasSubstr("no step() since"));
  one.scale.step(one.sgd);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { one.scale.step(one.sgd); }), HasSubstr("called twice"));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { one.scale.unscale(one.sgd); }), HasSubstr("unscale()"));
  EXPECT_THROW(LossScale({.initial_scale = 0}), InvalidArgumentError);
  EXPECT_THROW(LossScale({.growth_factor = 1}), InvalidArgumentError);
  EXPECT_THROW(LossScale({.backoff_factor = 1}), InvalidArgumentError);
  EXPECT_THROW(LossScale({.growth_interval = 0}), InvalidArgumentError);
}

TEST(LossScale, ThatHelpsNothingAnyMoreIsTold) {
  const Warnings warnings;
  OneWeight one;
  for (int i = 0; i < 60; ++i) one.step_with(kInfinity);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("the last 25 updates were left out")));
}

TEST(LossScale, CoversTheRowsOfASparseGradient) {
  at::Tensor table = at::ones({4, 1}).requires_grad_();
  torch::optim::SGD sgd({table}, 1.0);
  LossScale scale({.initial_scale = 4});
  const at::Tensor rows = at::zeros({1, 2}, at::kLong);
  table.mutable_grad() = at::sparse_coo_tensor(rows, at::ones({2, 1}), {4, 1});
  EXPECT_TRUE(scale.step(sgd));
  EXPECT_EQ(table[0].item<float>(), 0.5) << "the sum of the two, divided by the scale";
}

// Some of its steps are left out: the scale is soon too large again.
struct Scaled : Trial {
  explicit Scaled(bool keeps) {
    step = [this](const TorchStep& step) {
      optimizer->zero_grad();
      const at::Tensor loss = loss_of(torch::randn({16, 4}));
      scale.scale(loss).backward();
      if (scale.current() > 16) net->parameters()[0].mutable_grad()[0][0] = kInfinity;
      skipped += scale.step(*optimizer) ? 0 : 1;
      scale.update();
      return loss + step.number * 0;
    };
    TorchTrainingOptions options;
    if (keeps) options.kept.keep("loss_scale", scale).keep("skipped", skipped);
    bind(options);
  }
  LossScale scale{{.initial_scale = 64, .growth_interval = 2}};
  int skipped = 0;
};

class LossScaleTest : public TorchResumeTest {};

TEST_F(LossScaleTest, GoesOnBitForBitOnceItIsKept) {
  const Warnings warnings;
  const Make kept = [] { return std::make_unique<Scaled>(true); };
  expect_exact(kept, plain_loop);
  const Make left_out = [] { return std::make_unique<Scaled>(false); };
  EXPECT_FALSE(equal(end_of(left_out, plain_loop, 5), end_of(left_out, plain_loop))) << "what this is about";
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(LossScaleTest, WhatAFailedStepHasBegunIsOverAfterTheRestore) {
  Scaled trial(true);
  trial.start();
  trial.train(2);
  const std::string saved = trial.save(path_);
  const auto step = trial.step;
  trial.step = [&](const TorchStep&) -> at::Tensor {
    trial.scale.unscale(*trial.optimizer);
    throw OutOfRangeError("the input has ended");
  };
  EXPECT_THROW(trial.train(), OutOfRangeError);
  trial.step = step;
  trial.start(saved);
  EXPECT_NO_THROW(trial.train());
}

// Its forward pass is in bfloat16; `guards`: by Autocast, else by what surrounds the loop.
std::unique_ptr<Trial> casting(bool guards) {
  auto trial = std::make_unique<Trial>();
  trial->step = [guards, trial = trial.get()](const TorchStep&) {
    trial->optimizer->zero_grad();
    torch::Tensor loss;
    {
      std::optional<Autocast> autocast;
      if (guards) autocast.emplace();
      const torch::Tensor batch = torch::randn({16, 4});
      const torch::Tensor twice = trial->net->forward(batch) + trial->net->forward(batch * 0.5);
      EXPECT_EQ(twice.scalar_type(), at::kBFloat16);
      loss = (twice - batch.narrow(1, 0, 2)).square().mean();
    }
    return trial->update(loss);
  };
  trial->bind();
  return trial;
}

TEST_F(LossScaleTest, ABfloat16StepByAutocastIsExact) {
  const Warnings warnings;
  expect_exact([] { return casting(true); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// libtorch would keep the casted weights of the first step, and end in an error.
TEST_F(LossScaleTest, AutocastAroundTheWholeLoopIsExactToo) {
  const Loop under_autocast = [](Trial& trial, int64_t first, int64_t last) {
    const Autocast autocast;
    plain_loop(trial, first, last);
  };
  expect_exact([] { return casting(false); }, under_autocast);
  EXPECT_TRUE(
      equal(end_of([] { return casting(false); }, under_autocast), end_of([] { return casting(true); }, plain_loop)));
}

TEST_F(LossScaleTest, AutocastEndsWithItsScope) {
  const at::Tensor a = at::ones({2, 2}), weight = at::ones({2, 2}).requires_grad_();
  {
    const Autocast outer;
    {
      const Autocast inner;
      EXPECT_EQ(at::mm(a, weight).scalar_type(), at::kBFloat16);
    }
    EXPECT_EQ(at::mm(a, weight).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::mm(a, weight).scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace longhaul

// Optimizer classes of the program, and LBFGS: what they keep is in checkpoints.
#include <torch/optim/lbfgs.h>

#include "longhaul/binding/own_optimizer_fixture.h"
#include "longhaul/binding/values/optimizer_state.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::optim::LBFGS;
using torch::optim::LBFGSOptions;

class OwnOptimizerTest : public TorchResumeTest {
 protected:
  static std::unique_ptr<Trial> lion_trial() {
    auto trial = std::make_unique<Trial>();
    trial->optimizer = make_lion(trial->net->parameters());
    trial->bind();
    return trial;
  }
};

TEST_F(OwnOptimizerTest, GoesOnBitForBitOnceItsFieldsAreListed) {
  const Warnings warnings;
  expect_exact(lion_trial, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(OwnOptimizerTest, EachFieldIsInTheCheckpointByItsName) {
  BoundProgram program(make_lion);
  program.initialize().train(4);
  EXPECT_EQ(program.get("Lion/0.weight/momentum").shape(), (Shape{8, 4}));
  EXPECT_EQ(program.get("Lion/0.weight/step").item<int64_t>(), 4);
  EXPECT_EQ(program.get("Lion/0.weight/largest").dtype(), kDouble);
  EXPECT_EQ(program.get("Lion/0.weight/norms").shape(), (Shape{3}));
  EXPECT_EQ(program.get("Lion/group_0/beta2").item<double>(), 0.99);
  EXPECT_EQ(program.get("Lion/own/steps").item<int64_t>(), 4);
  EXPECT_EQ(program.get("Lion/own/drift").num_elements(), 1);
}

TEST_F(OwnOptimizerTest, WhatWasAbsentComesBackAsAbsent) {
  BoundProgram first(make_lion);
  const std::string saved = first.initialize().save(path_);
  BoundProgram trained(make_lion);
  trained.initialize().train(3).restore(saved);
  EXPECT_EQ(trained.optimizer->state().size(), 0u);
  const auto& lion = static_cast<Lion&>(*trained.optimizer);
  EXPECT_EQ(lion.steps, 0);
  EXPECT_FALSE(lion.drift.defined());
  BoundProgram fresh(make_lion);
  const std::vector<Tensor> expected = fresh.initialize().train(2).state();
  torch::manual_seed(5);
  const std::vector<Tensor> got = trained.restore(saved).train(2).state();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << i;
}

TEST_F(OwnOptimizerTest, ARestoredStateIsTheOneThatWasSavedWhateverTheProcessHadBefore) {
  BoundProgram undisturbed(make_lion);
  const std::string saved = undisturbed.initialize().train(2).save(path_);
  const std::vector<Tensor> expected = undisturbed.train(3).state();
  BoundProgram other(make_lion);
  const std::vector<Tensor> got = other.initialize().train(5).restore(saved).train(3).state();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << i;
}

TEST_F(OwnOptimizerTest, ItsOptionsAreThoseOfTheCheckpoint) {
  BoundProgram program(make_lion);
  program.optimizer->param_groups()[0].options().set_lr(0.25);
  const std::string saved = program.initialize().save(path_);
  BoundProgram restored(make_lion);
  restored.restore(saved);
  EXPECT_EQ(restored.optimizer->param_groups()[0].options().get_lr(), 0.25);
}

// An optimizer that stays idle is named by what it keeps.
TEST_F(OwnOptimizerTest, ThatIsBoundButDoesNotStepIsNamed) {
  const auto trial = lion_trial();
  auto other = make_lion(trial->net->parameters());
  trial->step = [&](const TorchStep&) {
    other->zero_grad();
    const torch::Tensor loss = trial->loss_of(torch::randn({16, 4}));
    loss.backward();
    other->step();
    return loss;
  };
  const Warnings warnings;
  trial->start();
  trial->train(12);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("the optimizer Lion has not stepped in 10 steps")));
}

// Keeps what its registration does not say.
struct OtherState : torch::optim::OptimizerCloneableParamState<OtherState> {};
class Forgetful : public Lion {
 public:
  using Lion::Lion;
  torch::Tensor step(LossClosure) override {
    state_[optimizer_state_key(param_groups_[0].params()[0])] = std::make_unique<OtherState>();
    return {};
  }
};

TEST_F(OwnOptimizerTest, AStateOfAnotherClassThanRegisteredIsRefusedAtTheNextSave) {
  register_optimizer(OptimizerKind<Forgetful, LionOptions, LionState>("Forgetful").number("step", &LionState::step));
  BoundProgram program([](auto& parameters) { return std::make_unique<Forgetful>(parameters); });
  program.initialize().train(1);
  EXPECT_THAT(
      message_of<FailedPreconditionError>([&] { program.save(path_); }),
      AllOf(HasSubstr("the optimizer Forgetful keeps for 0.weight a state of another class"), HasSubstr("OtherState")));
}

TEST_F(OwnOptimizerTest, ATensorOfAnotherDtypeThanRegisteredIsRefusedAtTheNextSave) {
  struct Single : Lion {
    using Lion::Lion;
  };
  register_optimizer(OptimizerKind<Single, LionOptions, LionState>("Single").tensors("norms", &LionState::norms));
  BoundProgram program([](auto& parameters) { return std::make_unique<Single>(parameters); });
  program.initialize().train(1);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.save(path_); }),
              AllOf(HasSubstr("Single/0.weight/norms is Double in the program, but its OptimizerKind says Float")));
}

TEST_F(OwnOptimizerTest, OptionsOfAnotherClassThanRegisteredAreRefused) {
  struct Wrong : Lion {
    using Lion::Lion;
  };
  register_optimizer(
      OptimizerKind<Wrong, torch::optim::SGDOptions>("Wrong").option("lr", &torch::optim::SGDOptions::lr));
  EXPECT_THAT(message_of<InvalidArgumentError>(
                  [] { BoundProgram([](auto& parameters) { return std::make_unique<Wrong>(parameters); }); }),
              HasSubstr("group 0 of the optimizer Wrong has options of another class"));
}

TEST_F(OwnOptimizerTest, ARegistrationThatCannotWorkIsRefused) {
  using Kind = OptimizerKind<Lion, LionOptions, LionState>;
  const auto refusal = [](const Kind& kind) {
    return message_of<InvalidArgumentError>([&] { register_optimizer(kind); });
  };
  EXPECT_THAT(refusal(Kind("")), HasSubstr("needs a name"));
  EXPECT_THAT(refusal(Kind("Lion").number("", &LionState::step)), HasSubstr("must not be empty"));
  EXPECT_THAT(refusal(Kind("Lion").number("step", &LionState::step).tensor("step", &LionState::momentum)),
              HasSubstr("two fields named step"));
  struct Other : Lion {};
  register_optimizer(lion_kind());
  EXPECT_THAT(message_of<AlreadyExistsError>([] { register_optimizer(OptimizerKind<Other, LionOptions>("Lion")); }),
              HasSubstr("another class of optimizers is registered as Lion"));
  EXPECT_THAT(message_of<AlreadyExistsError>([] { register_optimizer(OptimizerKind<Other, LionOptions>("Adam")); }),
              HasSubstr("Adam is libtorch's optimizer"));
  EXPECT_THAT(message_of<AlreadyExistsError>(
                  [] { register_optimizer(OptimizerKind<torch::optim::SGD, torch::optim::SGDOptions>("MySgd")); }),
              HasSubstr("its class is one of libtorch's"));
}

// LBFGS evaluates the loss of a batch many times in a step.
class LbfgsTest : public TorchResumeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::unique_ptr<Trial> make() { return make({}); }
  static std::unique_ptr<Trial> make(const TorchTrainingOptions& binding, int64_t history = 4) {
    auto trial = std::make_unique<Trial>();
    auto options = LBFGSOptions(0.5).max_iter(3).history_size(history);
    if (*GetParam() != 0) options.line_search_fn(GetParam());
    trial->optimizer = std::make_unique<LBFGS>(trial->net->parameters(), options);
    trial->step = [trial = trial.get()](const TorchStep&) {
      const torch::Tensor batch = torch::randn({16, 4});
      trial->net->eval();
      return trial->optimizer->step([&] {
        trial->optimizer->zero_grad();
        const torch::Tensor loss = trial->loss_of(batch);
        loss.backward();
        return loss;
      });
    };
    trial->bind(binding);
    return trial;
  }
};

TEST_P(LbfgsTest, GoesOnBitForBit) {
  const Warnings warnings;
  expect_exact([] { return make(); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// libtorch would write past its list of `history_size` numbers.
TEST_P(LbfgsTest, ALongerHistoryThanTheProgramsOptionsAllowIsSafe) {
  std::string prefix;
  {
    const auto trial = make();
    trial->start();
    trial->train(5);
    prefix = trial->save(path_);
  }
  const auto trial = make({.restore_optimizer_options = false}, /*history=*/2);
  const auto& options = static_cast<LBFGSOptions&>(trial->optimizer->param_groups()[0].options());
  const auto history = [&] {
    return static_cast<torch::optim::LBFGSParamState&>(*trial->optimizer->state().begin()->second).old_dirs().size();
  };
  trial->start();
  trial->train(3);
  EXPECT_EQ(history(), 2u);
  trial->start(prefix);
  trial->train(3);
  EXPECT_EQ(history(), 4u) << "that of the checkpoint";
  EXPECT_EQ(options.history_size(), 4);
}

TEST_P(LbfgsTest, HasItsHistoryInCheckpointsUnderTheFirstParameter) {
  const auto trial = make();
  trial->start();
  trial->train(5);
  const auto get = [&](const std::string& name) { return trial->session.run("LBFGS/0.weight/" + name + ":0"); };
  EXPECT_EQ(get("old_dirs").shape(), (Shape{4, 58}));
  EXPECT_EQ(get("old_stps").shape(), (Shape{4, 58}));
  EXPECT_EQ(get("ro").shape(), (Shape{4}));
  EXPECT_EQ(get("d").shape(), (Shape{58}));
  const auto& state = static_cast<torch::optim::LBFGSParamState&>(*trial->optimizer->state().begin()->second);
  EXPECT_EQ(get("n_iter").item<int64_t>(), state.n_iter());
  EXPECT_EQ(get("t").item<double>(), state.t());
  EXPECT_EQ(trial->session.run("LBFGS/group_0/history_size:0").item<int64_t>(), 4);
}

// A step that finds no gradient to speak of leaves counts and nothing else.
TEST_P(LbfgsTest, AStateWithoutADirectionComesBackAsIt) {
  const auto trial = make();
  auto& options = static_cast<LBFGSOptions&>(trial->optimizer->param_groups()[0].options());
  options.tolerance_grad(1e9);
  trial->start();
  trial->train(2);
  const std::string saved = trial->save(path_);
  const auto other = make();
  EXPECT_EQ(other->start(saved), 2);
  EXPECT_EQ(other->session.run("LBFGS/0.weight/func_evals:0").item<int64_t>(), 2);
  EXPECT_EQ(other->session.run("LBFGS/0.weight/n_iter:0").item<int64_t>(), 0);
  EXPECT_EQ(other->session.run("LBFGS/0.weight/t:0").item<double>(), 0);
  other->train(1);
}

// No checkpoint has what the line search is, so that the program's takes effect.
TEST_P(LbfgsTest, AnotherLineSearchAfterARestartIsNamed) {
  std::string saved;
  {
    const auto trial = make();
    trial->start();
    trial->train(3);
    saved = trial->save(path_);
  }
  const bool searched = *GetParam() != 0;
  const auto trial = make();
  static_cast<LBFGSOptions&>(trial->optimizer->param_groups()[0].options())
      .line_search_fn(searched ? c10::optional<std::string>() : "strong_wolfe");
  trial->start(saved);
  const Warnings warnings;
  trial->train();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr(searched ? "strong_wolfe as line_search_fn of LBFGS: was true, is"
                                                              : "strong_wolfe as line_search_fn of LBFGS: was false")));
}

INSTANTIATE_TEST_SUITE_P(, LbfgsTest, ::testing::Values("", "strong_wolfe"),
                         [](const auto& info) { return std::string(*info.param != 0 ? "StrongWolfe" : "Plain"); });

}  // namespace
}  // namespace longhaul

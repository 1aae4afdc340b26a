// What a program does with what it has bound, and what becomes of it: replaced, overwritten, ended, not detached.
#include <torch/nn/modules/embedding.h>

#include <future>

#include "longhaul/binding/torch_resume_fixture.h"
#include "longhaul/binding/torch_versions_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TorchMisuseTest : public TorchFindingsTest {};

// A training whose optimizer another object takes the place of, from a step on.
struct Renewed : Trial {
  Renewed(const MakeOptimizer& make, int64_t from, const TorchTrainingOptions& options = {}) {
    optimizer = make(net->parameters());
    bind(options);
    step = [this, make, from](const TorchStep& step) {
      if (step.number == from) renewed = make(net->parameters());
      torch::optim::Optimizer& used = renewed ? *renewed : *optimizer;
      used.zero_grad();
      const torch::Tensor loss = 0.01 * loss_of(torch::ones({2, 4}));
      loss.backward();
      used.step();
      return loss;
    };
  }
  std::unique_ptr<torch::optim::Optimizer> renewed;
};

class EachRenewedOptimizerTest : public ::testing::TestWithParam<OptimizerCase> {};

// What changes on a device is only looked at in steps whose number is a power of two.
TEST_P(EachRenewedOptimizerTest, IsNamedOnceIfTheBoundOneKeepsAnything) {
  const bool looks_rarely = !test_device().is_cpu();
  for (const int64_t from : looks_rarely ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 5}) {
    const Warnings warnings;
    Renewed trial(GetParam().make, from);
    trial.start();
    trial.train(looks_rarely ? 513 : 30);
    if (std::string(GetParam().name) == "Sgd") {
      EXPECT_THAT(warnings.seen(), IsEmpty());
    } else {
      EXPECT_THAT(warnings.seen(),
                  ElementsAre(AllOf(HasSubstr("has not stepped"), HasSubstr("recreated after it was bound"))));
    }
  }
}

TEST_P(EachRenewedOptimizerTest, IsNotNamedWhereItIsNone) {
  const Warnings warnings;
  Renewed one(GetParam().make, /*from=*/-1);
  one.start();
  one.train(30);
  Renewed other(GetParam().make, 5, {.updates_without_optimizer = true});
  other.start();
  other.train(30);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(, EachRenewedOptimizerTest, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

void overwrite(Trial& trial) {
  const torch::NoGradGuard no_grad;
  trial.net->parameters()[0].fill_(0.5);
}

TEST_F(TorchMisuseTest, RestoredWeightsThatAreOverwrittenAreNamed) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    overwrite(trial);
    plain_loop(trial, first, last);
  };
  EXPECT_THAT(warnings_of(plain, loop), IsEmpty()) << "nothing was restored";
  EXPECT_THAT(warnings_of(plain, loop, 5), ElementsAre(AllOf(HasSubstr("0.weight"), HasSubstr("restored"))));
}

TEST_F(TorchMisuseTest, WeightsThatAreOverwrittenBeforeAnyStepAreNot) {
  const auto first = plain();
  first->start();
  const std::string saved = first->save(path_);
  const Warnings warnings;
  const auto second = plain();
  second->start(saved);
  overwrite(*second);
  second->train(3);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchMisuseTest, OneAssignmentDoesNotHideWhatElseIsWritten) {
  const auto trial = plain();
  trial->start();
  trial->train(2);
  const Variable bias = trial->training.model[1];
  const Operation assign =
      ops::assign(Scope(trial->graph), bias, ops::constant(Scope(trial->graph), trial->session.run(bias))).op();
  const Warnings warnings;
  trial->session.run(assign);
  trial->train(1);
  EXPECT_THAT(warnings.seen(), IsEmpty());
  trial->session.run(assign);
  overwrite(*trial);
  trial->train(1);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("0.weight")));
}

TEST_F(TorchMisuseTest, AModuleOfASharedPointerLivesAsLongAsItsGraph) {
  std::weak_ptr<torch::nn::Module> module;
  {
    Trial trial;
    trial.step = [](const TorchStep&) { return torch::ones({1}); };
    trial.bind({}, /*with_optimizer=*/false);
    trial.start();
    module = trial.net.ptr();
    trial.net = torch::nn::Sequential(torch::nn::Linear(1, 1));
    ASSERT_FALSE(module.expired());
    trial.train();
    EXPECT_NE(trial.save(path_), "");
  }
  EXPECT_TRUE(module.expired());
}

TEST_F(TorchMisuseTest, AStateWithItsHistoryIsNamedOnceAndSavedWithoutIt) {
  CountedWarnings of_libtorch;
  const warnings_of_libtorch::WarningHandlerGuard guard(&of_libtorch);
  torch::Tensor hidden = torch::zeros({2, 4}, test_device());
  const auto make = [&] {
    hidden = torch::zeros({2, 4}, test_device());
    auto trial = std::make_unique<Trial>();
    trial->bind({.state = {{"hidden", &hidden}}});
    trial->step = [&, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      hidden = trial->net->forward(hidden.detach() + 1).repeat({1, 2});
      return trial->update(hidden.square().mean());
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make, plain_loop), ElementsAre(AllOf(HasSubstr("state/hidden"), HasSubstr("detach()"))));
  EXPECT_EQ(of_libtorch.count, 0);
  const auto trial = make();
  trial->start();
  trial->train(2);
  const std::string saved = trial->save(path_);
  const auto resumed = make();
  resumed->start(saved);
  EXPECT_FALSE(hidden.requires_grad());
}

TEST_F(TorchMisuseTest, AStateIsNotKeptAliveByTheLibrary) {
  torch::Tensor hidden = torch::zeros({2, 4}, test_device());
  Trial trial;
  trial.bind({.state = {{"hidden", &hidden}}});
  trial.start();
  trial.train();
  const c10::weak_intrusive_ptr<c10::TensorImpl> before(hidden.getIntrusivePtr());
  hidden = torch::ones({2, 4}, test_device());
  EXPECT_TRUE(before.expired());
}

TEST_F(TorchMisuseTest, ALossThatIsFetchedInARunOfItsOwnIsNamedAsAStep) {
  const auto trial = plain();
  trial->start();
  const Warnings warnings;
  trial->train();
  trial->session.run({trial->training.loss, Fetch(trial->training.train_op)});
  EXPECT_THAT(warnings.seen(), IsEmpty());
  for (int i = 0; i < 2; ++i) trial->session.run(trial->training.loss);
  EXPECT_EQ(trial->session.run(trial->training.global_step).item<int64_t>(), 4) << "it is a step like any other";
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("loss was fetched in a separate run")));
}

TEST_F(TorchMisuseTest, ATrainingThatFetchesNothingButTheLossIsNotNamed) {
  const auto trial = plain();
  trial->start();
  const Warnings warnings;
  for (int i = 0; i < 3; ++i) trial->session.run(trial->training.loss);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchMisuseTest, AForgottenUpdateIsNamedOnce) {
  const auto trial = without_update();
  trial->start();
  const Warnings warnings;
  trial->train(999);
  EXPECT_THAT(warnings.seen(), IsEmpty());
  trial->train(1500);
  EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("no parameter has changed in 1000 steps"),
                                                 HasSubstr("step() of the optimizer"))));
}

TEST_F(TorchMisuseTest, AnUpdateBetweenStepsIsNamedAsThatAndNotAsForgotten) {
  const auto trial = without_update();
  trial->start();
  const Warnings warnings;
  for (int i = 0; i < 1100; ++i) {
    trial->train();
    trial->optimizer->step();
  }
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("changed between two steps")));
}

TEST_F(TorchMisuseTest, StepsWithoutGradientsBeforeTheFirstUpdateAreNotNamed) {
  const auto trial = plain();
  trial->step = [&](const TorchStep& step) {
    if (step.number < 1100) return torch::ones({1});
    trial->optimizer->zero_grad();
    return trial->update(trial->loss_of(torch::ones({2, 4})));
  };
  trial->start();
  const Warnings warnings;
  trial->train(1200);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchMisuseTest, AModuleThatIsNotTheOneThatTrainsIsNamedOnce) {
  const auto trial = plain();
  trial->step = [&](const TorchStep&) { return torch::ones({1}); };
  trial->start();
  const Warnings warnings;
  trial->train(1999);
  EXPECT_THAT(warnings.seen(), IsEmpty());
  trial->train(100);
  EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("no parameter of the bound module has changed or had a"),
                                                 HasSubstr("bind the module that is trained"))));
}

TEST_F(TorchMisuseTest, AFrozenModuleIsNotNamed) {
  const auto trial = plain();
  for (auto& parameter : trial->net->parameters()) parameter.set_requires_grad(false);
  trial->step = [&](const TorchStep&) { return torch::ones({1}); };
  trial->start();
  const Warnings warnings;
  trial->train(2100);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// Of whom the other would wait for the end of the step.
TEST_F(TorchMisuseTest, AStepFunctionThatSavesWhileAnotherThreadDoesIsRefusedAndNothingHangs) {
  const auto trial = plain();
  std::thread saving;
  trial->step = [&](const TorchStep&) {
    saving = std::thread([&] {
      try {
        trial->save(path_);
      } catch (const FailedPreconditionError&) {  // of the step that has failed
      }
    });
    std::thread([&] {
      while (!trial->session.resources().gate().is_shut()) std::this_thread::yield();
    }).join();
    trial->save(path_);
    return torch::ones({1});
  };
  trial->start();
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { trial->train(); }), HasSubstr("a step function saves"));
  saving.join();
}

TEST_F(TorchMisuseTest, AStepFunctionThatSavesIsRefusedAndNothingHangs) {
  const auto trial = plain();
  trial->step = [&](const TorchStep&) {
    trial->save(path_);
    return torch::ones({1});
  };
  trial->start();
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { trial->train(); }),
              AllOf(HasSubstr("a step function saves"), HasSubstr("between two steps")));
  EXPECT_EQ(trial->session.run(trial->training.global_step).item<int64_t>(), 0);
  trial->save(path_);
}

TEST_F(TorchMisuseTest, ASecondThreadThatTrainsIsRefusedAndTheFirstGoesOn) {
  const auto trial = plain();
  std::promise<void> began, may_end;
  trial->step = [&](const TorchStep& step) {
    if (step.number == 0) {
      began.set_value();
      may_end.get_future().wait();
    }
    return trial->update(trial->loss_of(torch::ones({2, 4})));
  };
  trial->start();
  auto first = std::async(std::launch::async, [&] { trial->train(); });
  began.get_future().wait();
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { trial->train(); }), HasSubstr("Run train_op in one thread"));
  may_end.set_value();
  first.get();
  trial->train();
  EXPECT_EQ(trial->session.run(trial->training.global_step).item<int64_t>(), 2);
  trial->save(path_);
}

TEST_F(TorchMisuseTest, AHandMadeRuleForTheRateIsToldWhatKeepsItsCounts) {
  const auto make = [] {
    auto trial = plain();
    trial->step = [trial = trial.get()](const TorchStep& step) {
      trial->optimizer->zero_grad();
      if (step.number % 3 == 2)
        trial->optimizer->param_groups()[0].options().set_lr(0.1 / static_cast<double>(step.number));
      return trial->update(trial->loss_of(torch::ones({2, 4})));
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make), ElementsAre(AllOf(HasSubstr("ops::external_variable"), HasSubstr("plateau"))));
}

TEST(TorchModules, AHolderIsAsGoodAsItsModule) {
  torch::nn::Linear net(2, 1), none{nullptr};
  move_to_test_device(*net);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const auto step = [&] {
    optimizer.zero_grad();
    const torch::Tensor loss = net->forward(torch::ones({1, 2}, test_device())).sum();
    loss.backward();
    optimizer.step();
    return loss;
  };
  {
    Graph graph;
    const TorchTraining training = torch_training(Scope(graph), net, optimizer, step);
    EXPECT_EQ(training.model.at(0).ref().op().name(), "weight");
  }
  Graph graph;
  EXPECT_EQ(torch_variables(Scope(graph), net).size(), 2u);
  EXPECT_THAT(refusal_of([&] { torch_training(Scope(graph), none, optimizer, step); }),
              HasSubstr("the module is null"));
}

}  // namespace
}  // namespace longhaul

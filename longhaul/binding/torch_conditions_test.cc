// What a checkpoint does not restore, and the first step after a restore is compared by.
#include <torch/nn/modules/rnn.h>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TorchConditionsTest : public TorchFindingsTest {
 protected:
  using Change = std::function<void(Trial& trial, int64_t number)>;

  // A loop that does something before each step.
  static Loop before_steps(const Change& change) {
    return [change](Trial& trial, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        change(trial, i);
        trial.train();
      }
    };
  }
  // What is said in a training that is stopped behind step 6 and started again.
  std::vector<std::string> said(const Change& change, const Make& make = plain) {
    return warnings_of(make, before_steps(change), 6);
  }
};

double& dropout(Trial& trial) {
  return trial.net[1]->as<torch::nn::Dropout>()->options.p();
}

TEST_F(TorchConditionsTest, WhatIsSetByTheStepsNumberIsNotNamed) {
  EXPECT_THAT(said([](Trial& trial, int64_t i) {
                trial.net->parameters()[0].set_requires_grad(i >= 3);
                trial.net[2]->train(i < 4);
                dropout(trial) = i < 2 ? 0.5 : 0.25;
              }),
              IsEmpty());
  EXPECT_THAT(said([](Trial& trial, int64_t i) { dropout(trial) = 0.5 - 0.03 * static_cast<double>(i); }), IsEmpty());
  EXPECT_THAT(said([](Trial& trial, int64_t i) { trial.net->parameters()[0].set_requires_grad(i % 2 == 0); }),
              IsEmpty());
}

TEST_F(TorchConditionsTest, WhatTheLoopChangedAtOneStepIsNamedWithBothValues) {
  EXPECT_THAT(said([](Trial& trial, int64_t i) {
                if (i == 3) trial.net->parameters()[0].set_requires_grad(false);
              }),
              ElementsAre(AllOf(HasSubstr("requires_grad of 0.weight: was false, is true"), Not(HasSubstr("0.bias")))));
  EXPECT_THAT(said([](Trial& trial, int64_t i) {
                if (i == 3) dropout(trial) = 0.125;
              }),
              ElementsAre(HasSubstr("dropout rate of 1: was 0.125, is 0.5")));
  EXPECT_THAT(said([](Trial& trial, int64_t i) {
                if (i == 3) trial.net[1]->eval();
              }),
              ElementsAre(HasSubstr("training mode of 1: was false, is true")));
}

TEST_F(TorchConditionsTest, ARateThatIsMultipliedInEachStepIsNamed) {
  EXPECT_THAT(said([](Trial& trial, int64_t) { dropout(trial) *= 0.8; }), ElementsAre(HasSubstr("dropout rate of 1")));
}

TEST_F(TorchConditionsTest, WhatAStepFunctionSetsBeforeItUsesItIsNotNamed) {
  const auto make = [] {
    auto trial = plain();
    trial->net->eval();
    trial->step = [trial = trial.get(), plain_step = trial->step](const TorchStep& step) {
      trial->net->train();
      return plain_step(step);
    };
    return trial;
  };
  EXPECT_THAT(said([](Trial& trial, int64_t) { trial.net->eval(); }, make), IsEmpty());
}

TEST_F(TorchConditionsTest, AnEvaluationBetweenTheLastStepAndTheCheckpointIsNoMatter) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    trial.net->train();
    plain_loop(trial, first, last);
    trial.net->eval();
  };
  EXPECT_THAT(warnings_of(plain, loop, 5), IsEmpty());
}

TEST_F(TorchConditionsTest, AreOfTheLastStepAlsoInACheckpointBeforeTheNextOne) {
  const auto first = plain();
  first->start();
  first->net[1]->eval();
  first->train(2);
  const auto second = plain();
  second->start(first->save(path_));
  const std::string again = second->save(directory_.file("again"));
  const Warnings warnings;
  const auto third = plain();
  third->start(again);
  third->train();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("training mode of 1: was false, is true")));
}

TEST_F(TorchConditionsTest, ACheckpointWithoutThemIsRestoredWithoutAWord) {
  const auto first = plain();
  first->start();
  first->net[1]->eval();
  first->train(2);
  const std::vector<VariableInfo> variables = ops::global_variables(first->graph);
  const std::string saved =
      Saver({.var_list = std::vector<SaveEntry>(variables.begin(), variables.end())}).save(first->session, path_);
  const Warnings warnings;
  const auto second = plain();
  second->start(saved);
  second->train(2);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchConditionsTest, AreNamedInTwentyLinesAtMost) {
  const auto make = [] {
    auto trial = std::make_unique<Trial>();
    for (int i = 0; i < 30; ++i) trial->net->push_back(torch::nn::Linear(2, 2));
    move_to_test_device(*trial->net);
    trial->optimizer = plain_sgd(trial->net->parameters());
    trial->bind();
    return trial;
  };
  const std::vector<std::string> warnings = said(
      [](Trial& trial, int64_t i) {
        if (i != 3) return;
        for (int layer = 4; layer < 30; ++layer) trial.net[static_cast<size_t>(layer)]->eval();
      },
      make);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(std::count(warnings[0].begin(), warnings[0].end(), '\n'), 19);
  EXPECT_THAT(warnings[0], HasSubstr("and 8 more"));
}

TEST_F(TorchConditionsTest, OptionsOfAnOptimizerAreRestoredAndNotNamed) {
  double decay = 0;
  const auto loop = before_steps([&](Trial& trial, int64_t i) {
    auto& options = static_cast<torch::optim::SGDOptions&>(trial.optimizer->param_groups()[0].options());
    if (i == 3) options.weight_decay(0.25).momentum(0.5).nesterov(true);
    decay = options.weight_decay();
  });
  EXPECT_THAT(warnings_of(plain, loop, 6), IsEmpty());
  EXPECT_EQ(decay, 0.25);
}

TEST_F(TorchConditionsTest, AnotherStepSizeOfASchedulerIsNamed) {
  unsigned step_size = 3;
  double gamma = 0.5;
  std::vector<std::unique_ptr<torch::optim::StepLR>> schedulers;
  const auto make = [&] {
    auto trial = std::make_unique<Trial>();
    auto& scheduler =
        *schedulers.emplace_back(std::make_unique<torch::optim::StepLR>(*trial->optimizer, step_size, gamma));
    trial->step = [plain_step = trial->step, &scheduler](const TorchStep& step) {
      const torch::Tensor loss = plain_step(step);
      scheduler.step();
      return loss;
    };
    trial->bind({.schedulers = {&scheduler}});
    return trial;
  };
  const auto first = make();
  first->start();
  first->train(2);
  const std::string saved = first->save(path_);
  step_size = 5;
  gamma = 0.25;
  const Warnings warnings;
  const auto second = make();
  second->start(saved);
  second->train();
  EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("step_size of schedulers/0: was 3, is 5"),
                                                 HasSubstr("gamma of schedulers/0: was 0.5, is 0.25"))));
}

TEST_F(TorchConditionsTest, OfAModuleOnTheStackAndOfRecurrentLayersAreSeen) {
  struct Net : torch::nn::Module {
    Net() {
      lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(4, 3).num_layers(2).dropout(0.5)));
      move_to_test_device(*this);
    }
    torch::nn::LSTM lstm{nullptr};
  };
  std::string saved;
  const Warnings warnings;
  for (const bool restores : {false, true}) {
    Net net;
    Graph graph;
    const TorchTraining training = torch_training(Scope(graph), net, std::vector<torch::optim::Optimizer*>{}, [&] {
      return std::get<0>(net.lstm->forward(torch::ones({5, 2, 4}, test_device()))).sum();
    });
    const Operation init = ops::global_variables_initializer(Scope(graph));
    Saver saver({.graph = &graph});
    DirectSession session(graph, {});
    if (restores) {
      saver.restore(session, saved);
    } else {
      session.run(init);
      net.lstm->options.dropout(0.125);
      net.lstm->options_base.dropout(0.125);
      net.eval();
    }
    session.run(training.train_op);
    saved = saver.save(session, path_);
  }
  EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("dropout rate of lstm: was 0.125, is 0.5"),
                                                 HasSubstr("training mode of the module: was false, is true"))));
}

}  // namespace
}  // namespace longhaul

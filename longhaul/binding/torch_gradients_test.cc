// Which gradients a checkpoint lacks, and what is trained where few elements change.
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/embedding.h>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TorchGradientsTest : public TorchFindingsTest {
 protected:
  using Step = std::function<void(Trial& trial, int64_t number)>;

  // A step function that makes a backward between what is given.
  static Make steps(const Step& before, const Step& after, double rate = 0.1) {
    return [=] {
      auto trial = std::make_unique<Trial>();
      trial->optimizer->param_groups()[0].options().set_lr(rate);
      trial->bind();
      trial->step = [=, trial = trial.get()](const TorchStep& step) {
        before(*trial, step.number);
        const torch::Tensor loss = trial->loss_of(torch::ones({2, 4}));
        loss.backward();
        after(*trial, step.number);
        return loss;
      };
      return trial;
    };
  }

  // Does this after each step.
  static Loop with(const Step& after) {
    return [after](Trial& trial, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        trial.train();
        after(trial, i);
      }
    };
  }
  std::vector<std::string> warnings_with_checkpoints(const Make& make) {
    return warnings_of(make, with([this](Trial& trial, int64_t) { trial.save(path_); }));
  }

  static void zero(Trial& trial, int64_t) { trial.optimizer->zero_grad(); }
  static void zero_module(Trial& trial, int64_t) { trial.net->zero_grad(); }
  static void set_to_none(Trial& trial, int64_t) { trial.net->zero_grad(/*set_to_none=*/true); }
  static void update(Trial& trial, int64_t) { trial.optimizer->step(); }
  static void update_sometimes(Trial& trial, int64_t number) {
    if (number % 3 != 1) trial.optimizer->step();
  }
  static void update_and_zero_at_fours(Trial& trial, int64_t number) {
    if (number % 4 != 3) return;
    trial.optimizer->step();
    trial.optimizer->zero_grad();
  }
  static void nothing(Trial&, int64_t) {}
};

TEST_F(TorchGradientsTest, AreNotGatheredWhereAStepSkipsItsUpdate) {
  for (const Step& clear : {Step(zero), Step(zero_module), Step(set_to_none)}) {
    EXPECT_THAT(warnings_with_checkpoints(steps(clear, update_sometimes)), IsEmpty());
    EXPECT_THAT(warnings_with_checkpoints(steps(clear, update)), IsEmpty());
  }
}

TEST_F(TorchGradientsTest, AreNamedWhereTheNextUpdateUsesThem) {
  EXPECT_THAT(warnings_with_checkpoints(steps(nothing, update_and_zero_at_fours)),
              ElementsAre(HasSubstr("gradients were accumulated")));
  EXPECT_THAT(warnings_with_checkpoints(steps(nothing, update, /*rate=*/0.001)),
              ElementsAre(HasSubstr("gradients were accumulated")))
      << "they are never set to zero";
}

TEST_F(TorchGradientsTest, AreNotGatheredWhereTheProgramPutsOthersInTheirPlace) {
  const auto make = [] {
    auto trial = plain();
    trial->step = [trial = trial.get()](const TorchStep&) -> torch::Tensor {
      const torch::Tensor loss = trial->loss_of(torch::ones({2, 4}));
      auto parameters = trial->net->parameters();
      const auto gradients = torch::autograd::grad({loss}, parameters);
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = gradients[i].clone();
      trial->optimizer->step();
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), IsEmpty());
}

TEST_F(TorchGradientsTest, AreNamedWhereTheirSumIsPutInTheirPlace) {
  const auto clip_and_update = [](Trial& trial, int64_t number) {
    for (torch::Tensor& each : trial.net->parameters()) each.mutable_grad() = each.grad().clamp(-1, 1);
    update_and_zero_at_fours(trial, number);
  };
  EXPECT_THAT(warnings_with_checkpoints(steps(nothing, clip_and_update)),
              ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, AreNamedWhereTheirSumHasAHistory) {
  const auto make = [] {
    auto trial = plain();
    trial->step = [trial = trial.get()](const TorchStep& step) {
      const torch::Tensor loss = trial->loss_of(torch::ones({2, 4}));
      loss.backward({}, c10::nullopt, /*create_graph=*/true);
      update_and_zero_at_fours(*trial, step.number);
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, AreNamedWhereAnUpdateComesWithoutABackward) {
  const auto make = [] {
    auto trial = plain();
    trial->step = [trial = trial.get()](const TorchStep& step) -> torch::Tensor {
      if (step.number % 2 == 0) {
        trial->loss_of(torch::ones({2, 4})).backward();
      } else {
        trial->optimizer->step();
        trial->optimizer->zero_grad();
      }
      return {};
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, AreNamedWhereAGroupsRateIsZero) {
  const auto make = [] {
    auto trial = std::make_unique<Trial>();
    std::vector<torch::Tensor> all = trial->net->parameters();
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<torch::Tensor>{all[0], all[1]}, std::make_unique<torch::optim::SGDOptions>(0.1));
    groups.emplace_back(std::vector<torch::Tensor>{all[2], all[3]}, std::make_unique<torch::optim::SGDOptions>(0.0));
    trial->optimizer = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0.1));
    trial->bind();
    trial->step = [trial = trial.get()](const TorchStep& step) {
      const torch::Tensor loss = trial->loss_of(torch::ones({2, 4}));
      loss.backward();
      update_and_zero_at_fours(*trial, step.number);
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, AreNotGatheredWhereTheLoopSetsThemToZero) {
  const auto loop = with([this](Trial& trial, int64_t) {
    trial.save(path_);
    trial.optimizer->zero_grad();
  });
  EXPECT_THAT(warnings_of(steps(nothing, update_sometimes), loop), IsEmpty());
}

TEST_F(TorchGradientsTest, AreNotGatheredWhereALayerThatAStepLeavesOutIsMovedByItsMomentum) {
  const auto make = [] {
    auto trial = plain();
    trial->step = [trial = trial.get()](const TorchStep& step) {
      trial->optimizer->zero_grad();
      const torch::Tensor examples = torch::ones({2, 4});
      const torch::Tensor loss =
          step.number % 3 == 2
              ? trial->net[2]->as<torch::nn::Linear>()->forward(torch::ones({2, 8}, test_device())).square().mean()
              : trial->loss_of(examples);
      return trial->update(loss);
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), IsEmpty());
}

// A table of which each step trains one row, that no fixed sample of elements is in, by an SGD that keeps nothing.
struct TableTrial : Trial {
  TableTrial(bool sparse, bool with_optimizer, bool gathers) {
    net = torch::nn::Sequential(torch::nn::Embedding(torch::nn::EmbeddingOptions(1000, 4).sparse(sparse)));
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
    step = [this, gathers](const TorchStep& step) {
      if (!gathers || step.number % 4 == 0) optimizer->zero_grad();
      const torch::Tensor loss = net->forward(torch::full({1}, 7 + step.number, at::kLong)).square().sum();
      loss.backward();
      if (!gathers || step.number % 4 == 3) optimizer->step();
      return loss;
    };
    bind({}, with_optimizer);
  }
};

TEST_F(TorchGradientsTest, OfATableAreNotGatheredWhereEachStepUpdates) {
  EXPECT_THAT(warnings_with_checkpoints([] { return std::make_unique<TableTrial>(false, true, false); }), IsEmpty());
}

TEST_F(TorchGradientsTest, OfATableAreNamedWhereTheyAreGathered) {
  EXPECT_THAT(warnings_with_checkpoints([] { return std::make_unique<TableTrial>(false, true, true); }),
              ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, NameATableWhoseOptimizerIsNotBound) {
  for (const bool sparse : {false, true}) {
    EXPECT_THAT(warnings_of([&] { return std::make_unique<TableTrial>(sparse, false, false); }),
                ElementsAre(HasSubstr("0.weight is trained by the step function, but no bound optimizer has it")))
        << sparse;
  }
}

TEST_F(TorchGradientsTest, NameATableThatIsTrainedBetweenSteps) {
  const auto make = [] {
    auto trial = std::make_unique<TableTrial>(false, true, false);
    trial->step = [trial = trial.get()](const TorchStep& step) {
      trial->optimizer->zero_grad();
      const torch::Tensor loss = trial->net->forward(torch::full({1}, 7 + step.number, at::kLong)).square().sum();
      loss.backward();
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make, with(update)), ElementsAre(HasSubstr("0.weight was changed between two steps")));
}

TEST_F(TorchGradientsTest, NameATableThatIsNotRegistered) {
  torch::nn::Embedding table(1000, 4);
  move_to_test_device(*table);
  torch::optim::SGD table_optimizer(table->parameters(), 0.1);
  const auto make = [&] {
    auto trial = plain();
    trial->step = [&, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      table_optimizer.zero_grad();
      const torch::Tensor loss =
          trial->net->forward(table(torch::full({2}, 7, at::kLong).to(test_device()))).square().mean();
      trial->update(loss);
      table_optimizer.step();
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make), ElementsAre(HasSubstr("the step function trains a tensor of shape [1000,4]")));
}

// Two networks, each with an optimizer, that one loss goes through.
struct Pair : torch::nn::Module {
  using Step = std::function<void(Pair& pair, int64_t number)>;

  Pair() {
    generator = register_module("generator", torch::nn::Linear(2, 2));
    critic = register_module("critic", torch::nn::Linear(2, 1));
    move_to_test_device(*this);
    one = std::make_unique<torch::optim::SGD>(generator->parameters(), 0.1);
    other = std::make_unique<torch::optim::SGD>(critic->parameters(), 0.1);
  }
  torch::Tensor loss() { return critic(generator(torch::ones({1, 2}, test_device()))).square().sum(); }

  // What is said in a training with a snapshot after each step.
  static std::vector<std::string> warnings_of(const Step& step) {
    Pair pair;
    Graph graph;
    const TorchTraining training =
        torch_training(Scope(graph), pair, {pair.one.get(), pair.other.get()}, [&](const TorchStep& at) {
          step(pair, at.number);
          return pair.loss();
        });
    const Warnings warnings;
    DirectSession session(graph, {});
    session.run(ops::global_variables_initializer(Scope(graph)));
    for (int i = 0; i < 6; ++i) {
      session.run(training.train_op);
      session.run(training.model[0], {}, {.snapshot = true});
    }
    return warnings.seen();
  }

  torch::nn::Linear generator{nullptr}, critic{nullptr};
  std::unique_ptr<torch::optim::Optimizer> one, other;
};

TEST_F(TorchGradientsTest, ThatAnotherLossLeavesAndAreSetToZeroWithinAStepAreNotGathered) {
  EXPECT_THAT(Pair::warnings_of([](Pair& pair, int64_t) {
                for (torch::optim::Optimizer* own : {pair.other.get(), pair.one.get()}) {
                  own->zero_grad();
                  pair.loss().backward();
                  own->step();
                }
              }),
              IsEmpty());
}

TEST_F(TorchGradientsTest, OfOneOptimizerAreNamedThoughAnotherOneSteps) {
  EXPECT_THAT(Pair::warnings_of([](Pair& pair, int64_t number) {
                pair.other->zero_grad();
                pair.loss().backward();
                pair.other->step();
                if (number % 4 != 3) return;
                pair.one->step();
                pair.one->zero_grad();
              }),
              ElementsAre(HasSubstr("gradients were accumulated")));
}

TEST_F(TorchGradientsTest, ThatAnotherOptimizersStepLeavesAreNotGathered) {
  EXPECT_THAT(Pair::warnings_of([](Pair& pair, int64_t number) {
                torch::optim::Optimizer& own = number % 2 == 0 ? *pair.one : *pair.other;
                own.zero_grad();
                pair.loss().backward();
                own.step();
              }),
              IsEmpty());
}

TEST_F(TorchGradientsTest, ThatACheckpointDoesNotHaveAreNamed) {
  const auto without = [] { return gathering({}); };
  const auto at_updates = with([this](Trial& trial, int64_t i) {
    if (i % 4 == 3) trial.save(path_);
  });
  EXPECT_THAT(warnings_with_checkpoints(without), ElementsAre(AllOf(HasSubstr("gradients were accumulated"),
                                                                    HasSubstr("TorchTrainingOptions::gradients"))));
  EXPECT_THAT(warnings_of(without, at_updates), IsEmpty());
  EXPECT_THAT(warnings_with_checkpoints([] { return gathering({.gradients = true}); }), IsEmpty());
}

}  // namespace
}  // namespace longhaul

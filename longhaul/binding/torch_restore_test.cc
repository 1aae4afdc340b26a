// What a bound program finds in a checkpoint, and what it refuses.
#include <torch/optim/schedulers/step_lr.h>

#include "longhaul/base/log.h"
#include "longhaul/binding/torch_fixture.h"
#include "longhaul/ops/external_variable.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TorchRestoreTest : public ::testing::Test {
 protected:
  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
};

class EachOptimizerTest : public TorchRestoreTest, public ::testing::WithParamInterface<OptimizerCase> {};

TEST_P(EachOptimizerTest, GoesOnBitForBitInAnotherProgram) {
  BoundProgram undisturbed(GetParam().make);
  const std::string saved = undisturbed.initialize().train(5).save(path_);
  undisturbed.train(5);
  const std::vector<Tensor> expected = undisturbed.state();
  BoundProgram resumed(GetParam().make);
  const std::vector<Tensor> got = resumed.restore(saved).train(5).state();
  const std::vector<VariableInfo> variables = ops::global_variables(resumed.graph);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << variables[i].name();
}

TEST_P(EachOptimizerTest, WhatWasAbsentComesBackAsAbsent) {
  BoundProgram first(GetParam().make);
  const std::string saved = first.initialize().save(path_);
  const size_t states = first.optimizer->state().size();  // none, but Adagrad has them from the start
  BoundProgram trained(GetParam().make);
  trained.initialize().train(3).restore(saved);
  EXPECT_EQ(trained.optimizer->state().size(), states);
  BoundProgram fresh(GetParam().make);
  const std::vector<Tensor> expected = fresh.initialize().train(2).state();
  torch::manual_seed(5);
  const std::vector<Tensor> got = trained.restore(saved).train(2).state();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(, EachOptimizerTest, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(TorchRestoreTest, AParameterThatIsNeverTrainedHasNoState) {
  BoundProgram program(default_adam);
  program.net->parameters()[0].set_requires_grad(false);
  const std::string saved = program.initialize().train(2).save(path_);
  EXPECT_EQ(program.get("Adam/0.weight/exp_avg").num_elements(), 0);
  EXPECT_EQ(program.get("Adam/0.bias/exp_avg").num_elements(), 8);
  EXPECT_EQ(program.get("Adam/0.bias/step").item<int64_t>(), 2);
  BoundProgram restored(default_adam);
  restored.restore(saved);
  EXPECT_EQ(restored.optimizer->state().size(), 5u);
}

TEST_F(TorchRestoreTest, OptionsAreThoseOfTheCheckpoint) {
  BoundProgram program(default_adam);
  static_cast<torch::optim::AdamOptions&>(program.optimizer->param_groups()[0].options())
      .lr(0.125)
      .amsgrad(true)
      .betas({0.5, 0.75});
  const std::string saved = program.initialize().save(path_);
  BoundProgram restored(default_adam);
  restored.restore(saved);
  const auto& options = static_cast<torch::optim::AdamOptions&>(restored.optimizer->param_groups()[0].options());
  EXPECT_EQ(options.lr(), 0.125);
  EXPECT_TRUE(options.amsgrad());
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.75));
}

TEST_F(TorchRestoreTest, ASchedulerGoesOnWhereItWas) {
  const auto rates_after = [&](bool interrupted) {
    torch::nn::Linear net(2, 1);
    torch::optim::SGD sgd(net->parameters(), 1.0);
    std::vector<double> rates;
    std::string saved;
    for (int run = 0; run < (interrupted ? 2 : 1); ++run) {
      static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(1.0);
      torch::optim::StepLR scheduler(sgd, /*step_size=*/3, 0.5);
      Graph graph;
      const auto step = [&] {
        scheduler.step();
        rates.push_back(sgd.param_groups()[0].options().get_lr());
        return at::Tensor();
      };
      const TorchTraining training = torch_training(Scope(graph), *net, sgd, step, {.schedulers = {&scheduler}});
      const Operation init = ops::global_variables_initializer(Scope(graph));
      Saver saver({.graph = &graph});
      DirectSession session(graph, {});
      if (saved.empty()) {
        session.run(init);
      } else {
        saver.restore(session, saved);
      }
      for (int i = 0; i < (interrupted ? 4 : 8); ++i) session.run(training.train_op);
      saved = saver.save(session, path_, training.global_step);
    }
    return rates;
  };
  EXPECT_EQ(rates_after(true), rates_after(false));
}

TEST_F(TorchRestoreTest, AGeneratorOfTheProgramsOwnGoesOnWhereItWas) {
  const auto make = [] { return at::make_generator<at::CPUGeneratorImpl>(7); };
  at::Generator first = make(), second = make();
  BoundProgram program(plain_sgd, 8, {.generators = {{"data", first}}});
  at::rand({3}, first);
  const std::string saved = program.initialize().save(path_);
  const at::Tensor expected = at::rand({3}, first);
  BoundProgram restored(plain_sgd, 8, {.generators = {{"data", second}}});
  restored.restore(saved);
  EXPECT_TRUE(at::equal(at::rand({3}, second), expected));
}

TEST_F(TorchRestoreTest, AModuleOfOtherShapesIsRefusedWithNamesAndShapesAndLeftAlone) {
  BoundProgram wide(plain_sgd, 16);
  const std::string saved = wide.initialize().save(path_);
  BoundProgram narrow;
  const at::Tensor before = narrow.net->parameters()[5].detach().clone();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { narrow.restore(saved); }),
              AllOf(HasSubstr("0.weight is [8,4] in the graph, [16,4] in the checkpoint"),
                    HasSubstr("1.running_mean is [8] in the graph, [16] in the checkpoint"),
                    HasSubstr("3.weight is [2,8] in the graph, [2,16] in the checkpoint"), Not(HasSubstr("3.bias"))));
  EXPECT_TRUE(at::equal(narrow.net->parameters()[5], before));
}

TEST_F(TorchRestoreTest, AModuleWithOtherParametersIsRefusedWithTheirNames) {
  torch::nn::Sequential net(torch::nn::Linear(4, 8));
  Graph graph;
  torch_variables(Scope(graph), *net);
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(Scope(graph)));
  const std::string saved = Saver({.graph = &graph}).save(session, path_);
  BoundProgram larger;
  EXPECT_THAT(message_of<NotFoundError>([&] { larger.restore(saved); }),
              AllOf(HasSubstr("Key 3.weight not found in checkpoint"), HasSubstr("Key 1.running_var not found"),
                    Not(HasSubstr("Key 0.weight"))));
}

TEST_F(TorchRestoreTest, AnOptimizerOfAnotherKindIsRefusedAndBothKindsAreNamed) {
  BoundProgram sgd;
  const std::string saved = sgd.initialize().save(path_);
  BoundProgram adam(default_adam);
  EXPECT_THAT(message_of<NotFoundError>([&] { adam.restore(saved); }),
              AllOf(HasSubstr("Key Adam/0.weight/exp_avg not found in checkpoint"),
                    HasSubstr("the graph has Adam, the checkpoint has SGD."),
                    HasSubstr("Only the checkpoint has:\n  SGD/0.bias/momentum_buffer")));
}

TEST_F(TorchRestoreTest, AStateThatDoesNotFitItsParameterIsRefused) {
  BoundProgram program(default_adam);
  program.initialize();
  const Scope root(program.graph);
  const Variable moment(ops::global_variables(program.graph)[program.training.model.size() + 6]);
  ASSERT_EQ(moment.name(), "Adam/0.weight/exp_avg");
  const Operation assign = ops::assign(root, moment, ops::constant(root, Tensor::of<float>({1, 2, 3}))).op();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { program.session->run(assign); }),
              HasSubstr("0.weight/exp_avg is [3], but its parameter is [8,4]"));
}

// It may have grown since it was bound, so that it is not refused.
TEST_F(TorchRestoreTest, AStateOfAnotherShapeIsToldWithItsNameAndBothShapes) {
  const auto in_program = [](const at::Tensor& state, const auto& use) {
    torch::nn::Linear net(2, 1);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    at::Tensor hidden = state;
    Graph graph;
    TorchTrainingOptions options;
    options.state = {{"hidden", &hidden}};
    torch_training(Scope(graph), *net, optimizer, [&] { return net(torch::ones({1, 2})).sum(); }, options);
    Saver saver({.graph = &graph});
    DirectSession session(graph, {});
    use(graph, saver, session);
    return hidden;
  };
  std::string saved;
  in_program(torch::ones({3}), [&](Graph& graph, Saver& saver, Session& session) {
    session.run(ops::global_variables_initializer(Scope(graph)));
    saved = saver.save(session, path_);
  });
  std::string told;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { told += line; });
  const at::Tensor restored =
      in_program(torch::zeros({2, 2}), [&](Graph&, Saver& saver, Session& session) { saver.restore(session, saved); });
  set_log_sink(before);
  EXPECT_TRUE(at::equal(restored, torch::ones({3})));
  EXPECT_THAT(told, HasSubstr("hidden is [2,2] in the program, but the restored value is [3]"));
}

TEST_F(TorchRestoreTest, SeveralOptimizersHaveScopesOfTheirOwn) {
  struct Pair : torch::nn::Module {
    Pair() {
      generator = register_module("generator", torch::nn::Linear(2, 2));
      critic = register_module("critic", torch::nn::Linear(2, 1));
    }
    torch::nn::Linear generator{nullptr}, critic{nullptr};
  };
  Pair pair;
  torch::optim::Adam one(pair.generator->parameters()), other(pair.critic->parameters());
  Graph graph;
  torch_training(Scope(graph), pair, std::vector<torch::optim::Optimizer*>{&one, &other}, [] { return at::Tensor(); });
  EXPECT_TRUE(graph.find_operation("Adam/generator.weight/exp_avg"));
  EXPECT_TRUE(graph.find_operation("Adam_1/critic.weight/exp_avg"));
}

// A network whose last layer has the weights of its first.
struct Tied : torch::nn::Module {
  Tied() {
    encoder = register_parameter("encoder", at::eye(3));
    decoder = register_parameter("decoder", encoder);
  }
  at::Tensor encoder, decoder;
};

TEST_F(TorchRestoreTest, TiedParametersHaveBothNamesAndOneState) {
  std::string saved;
  at::Tensor trained;
  for (const bool restores : {false, true}) {
    Tied tied;
    torch::optim::Adam adam(tied.parameters(), torch::optim::AdamOptions(0.01));
    Graph graph;
    const TorchTraining training = torch_training(Scope(graph), tied, adam, [&] {
      adam.zero_grad();
      const at::Tensor loss = at::ones({1, 3}).mm(tied.encoder).mm(tied.decoder.t()).square().sum();
      loss.backward();
      adam.step();
      return loss;
    });
    EXPECT_TRUE(graph.find_operation("encoder"));
    EXPECT_TRUE(graph.find_operation("decoder"));
    EXPECT_TRUE(graph.find_operation("Adam/encoder/exp_avg"));
    EXPECT_FALSE(graph.find_operation("Adam/decoder/exp_avg"));
    DirectSession session(graph, {});
    Saver saver({.graph = &graph});
    if (restores) {
      saver.restore(session, saved);
      EXPECT_TRUE(at::equal(tied.decoder, trained));
      EXPECT_TRUE(tied.decoder.is_same(tied.encoder));
    } else {
      session.run(ops::global_variables_initializer(Scope(graph)));
      session.run(training.train_op);
      saved = saver.save(session, path_);
      trained = tied.encoder.detach().clone();
    }
  }
}

TEST_F(TorchRestoreTest, AModuleAloneTakesItsParametersFromATraining) {
  BoundProgram program(default_adam);
  const std::string saved = program.initialize().train(3).save(path_);
  PlainProgram plain;
  Graph graph;
  const std::vector<Variable> model = torch_variables(Scope(graph), *plain.net);
  DirectSession session(graph, {});
  Saver({.var_list = std::vector<SaveEntry>(model.begin(), model.end())}).restore(session, saved);
  for (size_t i = 0; i < plain.net->parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(plain.net->parameters()[i], program.net->parameters()[i])) << i;
  }
  EXPECT_EQ(plain.net->buffers()[2].item<int64_t>(), 3) << "of batch norm's statistics";
}

}  // namespace
}  // namespace longhaul

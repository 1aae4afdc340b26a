// Which groups of parameters an optimizer has, in the program and in a checkpoint.
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Names = std::vector<std::string>;

// A network whose optimizer has its parameters in the groups that are given.
struct Grouped {
  explicit Grouped(const std::vector<Names>& groups) {
    torch::manual_seed(2);
    net = torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::Linear(3, 2));
    std::vector<torch::optim::OptimizerParamGroup> made;
    for (const Names& names : groups) {
      std::vector<at::Tensor> parameters;
      for (const std::string& name : names) parameters.push_back(net->named_parameters()[name]);
      made.emplace_back(parameters);
    }
    sgd = std::make_unique<torch::optim::SGD>(made, torch::optim::SGDOptions(0.1).momentum(0.9));
    training = torch_training(Scope(graph), *net, *sgd, [this] {
      sgd->zero_grad();
      const torch::Tensor loss = net->forward(torch::ones({2, 4})).square().mean();
      loss.backward();
      sgd->step();
      return loss;
    });
    init = ops::global_variables_initializer(Scope(graph));
  }
  std::string save(const std::string& path, const SaverOptions& options) {
    session.run(init);
    for (int i = 0; i < 2; ++i) session.run(training.train_op);
    return Saver(options).save(session, path);
  }
  std::string save(const std::string& path) { return save(path, {.graph = &graph}); }
  void restore(const std::string& prefix) { Saver({.graph = &graph}).restore(session, prefix); }

  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::SGD> sgd;
  Graph graph;
  TorchTraining training;
  Operation init;
  DirectSession session{graph, SessionOptions{}};
};

class TorchGroupsTest : public ::testing::Test {
 protected:
  // What a restore into `groups` says; it changes nothing.
  static std::string refusal(const std::vector<Names>& groups, const std::string& saved) {
    Grouped program(groups);
    const at::Tensor before = program.net->parameters()[0].detach().clone();
    const std::string message = message_of<InvalidArgumentError>([&] { program.restore(saved); });
    EXPECT_TRUE(at::equal(program.net->parameters()[0], before));
    EXPECT_TRUE(program.sgd->state().empty());
    return message;
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
  const Names all_{"0.weight", "0.bias", "1.weight", "1.bias"};
  const Names weights_{"0.weight", "1.weight"}, biases_{"0.bias", "1.bias"};
};

TEST_F(TorchGroupsTest, AnotherNumberOfGroupsIsRefusedAndBothAreNamed) {
  const std::string two = Grouped({weights_, biases_}).save(path_);
  EXPECT_THAT(refusal({all_}, two), HasSubstr("the optimizer SGD has 1 parameter group here and 2 in the checkpoint"));
  const std::string one = Grouped({all_}).save(path_);
  EXPECT_THAT(refusal({weights_, biases_}, one),
              HasSubstr("the optimizer SGD has 2 parameter groups here and 1 in the checkpoint"));
}

TEST_F(TorchGroupsTest, AParameterInAnotherGroupIsRefusedAndNamed) {
  const std::string saved = Grouped({weights_, biases_}).save(path_);
  EXPECT_THAT(refusal({biases_, weights_}, saved),
              AllOf(HasSubstr("its group 0 has 2 parameters here and 2 in the checkpoint"), HasSubstr("0.weight")));
  EXPECT_THAT(refusal({{"0.weight"}, {"1.weight", "0.bias", "1.bias"}}, saved),
              AllOf(HasSubstr("its group 0 has 1 parameters here and 2 in the checkpoint"), HasSubstr("1.weight")));
}

TEST_F(TorchGroupsTest, TheSameGroupsInAnotherOrderOfTheirParametersAreTheSame) {
  const std::string saved = Grouped({weights_, biases_}).save(path_);
  Grouped other({{"1.weight", "0.weight"}, biases_});
  EXPECT_NO_THROW(other.restore(saved));
  EXPECT_EQ(other.sgd->state().size(), 4u);
}

// As versions before this one wrote them.
TEST_F(TorchGroupsTest, ACheckpointThatDoesNotSayItIsComparedByTheNumberOfGroups) {
  Grouped program({weights_, biases_});
  const std::vector<VariableInfo> variables = ops::global_variables(program.graph);
  const std::string saved = program.save(
      path_, {.graph = &program.graph, .var_list = std::vector<SaveEntry>(variables.begin(), variables.end())});
  const Warnings warnings;
  EXPECT_NO_THROW(Grouped({weights_, biases_}).restore(saved));
  EXPECT_TRUE(warnings.seen().empty());
  EXPECT_THAT(refusal({all_}, saved), HasSubstr("1 parameter group here and 2 in the checkpoint"));
}

}  // namespace
}  // namespace longhaul

// Files of weights of a libtorch module: written, read by libtorch itself, and what a file that does not fit is told.
#include "longhaul/binding/module_state_dict.h"

#include <torch/nn/modules/activation.h>
#include <torch/serialize.h>

#include "longhaul/base/log.h"
#include "longhaul/binding/torch_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

torch::nn::Sequential small_net(int inputs = 2) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, 3), torch::nn::BatchNorm1d(3));
}

std::vector<at::Tensor> copies_of(const torch::nn::Sequential& net) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : net->parameters()) copies.push_back(tensor.detach().clone());
  for (const at::Tensor& tensor : net->buffers()) copies.push_back(tensor.clone());
  return copies;
}

bool same(const torch::nn::Sequential& net, const std::vector<at::Tensor>& expected) {
  const std::vector<at::Tensor> values = copies_of(net);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].equal(expected[i])) return false;
  }
  return values.size() == expected.size();
}

class ModuleStateDict : public ::testing::Test {
 protected:
  ModuleStateDict() {
    torch::manual_seed(1);
    net_ = small_net();
    net_->forward(torch::randn({4, 2}));  // so that the buffers are not as they were made
    expected_ = copies_of(net_);
  }
  std::string file(const std::string& name) const { return directory_.file(name); }
  std::string told(torch::nn::Sequential net, const StateDictOptions& options = {},
                   StateDictMatch match = StateDictMatch::kStrict) const {
    return error_of<InvalidArgumentError>([&] { load_state_dict(*net, file("net.pt"), options, match); });
  }

  const testing::TemporaryDirectory directory_;
  torch::nn::Sequential net_{nullptr};
  std::vector<at::Tensor> expected_;
};

TEST_F(ModuleStateDict, ComesBackInEachForm) {
  using enum StateDictFormat;
  for (const auto format : {kTorch, kTorchModule, kSafetensors}) {
    save_state_dict(*net_, file("net"), {.format = format});
    torch::nn::Sequential other = small_net();
    EXPECT_FALSE(same(other, expected_));
    EXPECT_EQ(load_state_dict(*other, file("net")).names.size(), 7u);
    EXPECT_TRUE(same(other, expected_));
    EXPECT_TRUE(other->parameters()[0].requires_grad());
  }
}

TEST_F(ModuleStateDict, IsReadByLibtorchsOwnLoad) {
  save_state_dict(*net_, file("net.pt"), {.format = StateDictFormat::kTorchModule});
  torch::nn::Sequential other = small_net();
  torch::load(other, file("net.pt"));
  EXPECT_TRUE(same(other, expected_));
  EXPECT_TRUE(other->parameters()[0].requires_grad());
  other->forward(torch::randn({4, 2})).sum().backward();
  EXPECT_TRUE(other->parameters()[0].grad().defined());
}

TEST_F(ModuleStateDict, WhatLibtorchsOwnSaveWroteIsRead) {
  torch::save(net_, file("net.pt"));
  torch::nn::Sequential other = small_net();
  load_state_dict(*other, file("net.pt"));
  EXPECT_TRUE(same(other, expected_));
}

TEST_F(ModuleStateDict, OfACheckpointOfABoundTrainingIsTheModule) {
  BoundProgram program(default_adam);
  const std::string saved = program.initialize().train(3).save(file("model"));
  export_state_dict(saved, file("net.pt"));
  PlainProgram other(default_adam);
  load_state_dict(*other.net, file("net.pt"));
  EXPECT_TRUE(same(other.net, copies_of(program.net)));
}

// The run's own checkpoint replaces the file's values.
TEST_F(ModuleStateDict, ATrainingStartsFromItAndARestartDoesNot) {
  PlainProgram pretrained(default_adam);
  pretrained.step();
  save_state_dict(*pretrained.net, file("net.pt"));
  const auto train = [&](const std::string& restored, int steps) {
    PlainProgram plain(default_adam);
    load_state_dict(*plain.net, file("net.pt"));
    EXPECT_TRUE(same(plain.net, copies_of(pretrained.net)));
    Graph graph;
    const auto training = torch_training(Scope(graph), *plain.net, *plain.optimizer, [&] { return plain.step(); });
    Saver saver({.graph = &graph});
    DirectSession session(graph, SessionOptions{});
    if (restored.empty()) session.run(ops::global_variables_initializer(Scope(graph)));
    if (!restored.empty()) saver.restore(session, restored);
    for (int i = 0; i < steps; ++i) session.run(training.train_op);
    expected_ = copies_of(plain.net);
    return saver.save(session, file("model"), 1);
  };
  const std::string saved = train("", 2);
  EXPECT_FALSE(same(pretrained.net, expected_));
  const std::vector<at::Tensor> trained = expected_;
  train(saved, 0);
  for (size_t i = 0; i < trained.size(); ++i) EXPECT_TRUE(trained[i].equal(expected_[i])) << i;
}

TEST_F(ModuleStateDict, LoadedIntoABoundModuleItWarns) {
  BoundProgram program(default_adam);
  save_state_dict(*program.net, file("net.pt"));
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  load_state_dict(*program.net, file("net.pt"));
  set_log_sink(before);
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("net.pt was loaded into a module that is bound to a graph")));
}

TEST_F(ModuleStateDict, AllThatDoesNotFitIsReportedAtOnceAndNothingIsChanged) {
  save_state_dict(*net_, file("net.pt"));
  torch::nn::Sequential other(torch::nn::Linear(4, 3), torch::nn::ReLU(), torch::nn::BatchNorm1d(3));
  const std::vector<at::Tensor> before = copies_of(other);
  EXPECT_THAT(told(other), AllOf(HasSubstr("net.pt does not fit the module: missing in the file: 2.bias, "),
                                 HasSubstr("unexpected in the file: 1.bias, "),
                                 HasSubstr("0.weight is float[3,2] in the file, float[3,4] in the module"),
                                 HasSubstr("The option `rename` maps the file's names")));
  EXPECT_THAT(told(other, {}, StateDictMatch::kCommon), HasSubstr("0.weight is float[3,2]"));
  EXPECT_TRUE(same(other, before));
}

TEST_F(ModuleStateDict, WhatBothHaveCanBeLoaded) {
  save_state_dict(*net_, file("net.pt"));
  torch::nn::Sequential other(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1));
  const auto first_only = [](const std::string& name) {
    return name.starts_with("0.") ? std::optional(name) : std::nullopt;
  };
  EXPECT_THAT(told(other, {.rename = first_only}),
              AllOf(HasSubstr("missing in the file: 1.bias, 1.weight"), HasSubstr("StateDictMatch::kCommon")));
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  load_state_dict(*other, file("net.pt"), {.rename = first_only}, StateDictMatch::kCommon);
  set_log_sink(before);
  EXPECT_TRUE(other->parameters()[0].equal(net_->parameters()[0]));
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("was loaded but for what only one side has: missing")));
  const auto none = [](const std::string& name) { return "other." + name; };
  EXPECT_THAT(told(other, {.rename = none}, StateDictMatch::kCommon), HasSubstr("does not fit the module"));
}

TEST_F(ModuleStateDict, FloatsAreConvertedAndIntegersAreNot) {
  const Tensor half = Tensor::of<Half>(Shape{1, 2}, {Half(1.5), Half(2)});
  torch::nn::Sequential other(torch::nn::Linear(torch::nn::LinearOptions(2, 1).bias(false)));
  save_state_dict({{"0.weight", half}}, file("net.pt"));
  load_state_dict(*other, file("net.pt"));
  EXPECT_EQ(other->parameters()[0][0][0].item<float>(), 1.5f);
  save_state_dict({{"0.weight", Tensor::of<int32_t>(Shape{1, 2}, {1, 2})}}, file("net.pt"));
  EXPECT_THAT(told(other), HasSubstr("0.weight is int32[1,2] in the file, float[1,2] in the module"));
}

TEST_F(ModuleStateDict, ADictInADictIsAskedFor) {
  StateDict nested;
  for (const auto& parameter : net_->named_parameters()) {
    nested.emplace_back("model/" + parameter.key(), Tensor::scalar(1.0f));
  }
  save_state_dict(nested, file("net.pt"));
  EXPECT_THAT(told(small_net()), HasSubstr("The file has dicts in its dict (model): the option `dict` chooses one"));
}

TEST_F(ModuleStateDict, FromMemoryItIsTheSame) {
  const StateDict weights = state_dict(*net_);
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& tensor : net_->parameters()) tensor.zero_();
  }
  torch::nn::Sequential other = small_net();
  load_state_dict(*other, weights);
  EXPECT_TRUE(same(other, expected_));
  torch::nn::Sequential wider = small_net(5);
  const std::vector<at::Tensor> before = copies_of(wider);
  const std::string told = error_of<InvalidArgumentError>([&] { load_state_dict(*wider, weights); });
  EXPECT_THAT(told, AllOf(HasSubstr("the state dict does not fit the module"),
                          HasSubstr("0.weight is float[3,2] in the state dict, float[3,5] in the module")));
  EXPECT_TRUE(same(wider, before));
}

}  // namespace
}  // namespace longhaul

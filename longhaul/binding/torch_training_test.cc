// A libtorch program's own training as an operation of a graph.
#include <atomic>
#include <chrono>
#include <thread>

#include "longhaul/binding/torch_fixture.h"
#include "longhaul/ops/summary_ops.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TorchTraining, ComputesWhatThePlainLoopComputes) {
  PlainProgram plain(default_adam);
  for (int i = 0; i < 5; ++i) plain.step();
  BoundProgram bound(default_adam);
  bound.initialize().train(5);
  const auto expected = plain.net->parameters(), got = bound.net->parameters();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(expected[i], got[i])) << i;
  EXPECT_EQ(bound.get("global_step").item<int64_t>(), 5);
}

TEST(TorchTraining, HasTheNamesOfTheModule) {
  BoundProgram program(default_adam);
  std::vector<std::string> model;
  for (const Variable& variable : program.training.model) model.push_back(variable.name());
  EXPECT_THAT(model, ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias", "1.running_mean",
                                 "1.running_var", "1.num_batches_tracked"));
  for (const char* name : {"Adam/group_0/lr", "Adam/group_0/beta2", "Adam/group_0/amsgrad", "Adam/3.bias/exp_avg",
                           "Adam/3.bias/max_exp_avg_sq", "Adam/3.bias/step", "generators/cpu"}) {
    EXPECT_TRUE(program.graph.find_operation(name)) << name;
  }
  EXPECT_EQ(ops::trainable_variables(program.graph).size(), 6u) << "statistics and the optimizer's are not trained";
}

TEST(TorchTraining, TheSizeOfItsCheckpointsIsKnownBeforeTheFirstStep) {
  for (const OptimizerCase& kind : optimizer_cases()) {
    BoundProgram program(kind.make);
    program.initialize();
    const uint64_t before = program.saver->bytes();
    program.train(1);
    uint64_t kept = 0;
    for (const auto& tensor : program.saver->saved_tensors()) {
      if (tensor.read.dtype() != kString) kept += program.session->run(tensor.read).size_bytes();
    }
    EXPECT_EQ(before, kept) << kind.name;
  }
}

TEST(TorchTraining, InitialisingKeepsWhatTheProgramHasMade) {
  BoundProgram program;
  const at::Tensor before = program.net->parameters()[0].detach().clone();
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.get("0.weight"); }),
              HasSubstr("Attempting to use uninitialized value 0.weight; run its initializer or restore a checkpoint"));
  program.initialize();
  EXPECT_TRUE(at::equal(program.net->parameters()[0], before));
  EXPECT_TRUE(at::equal(to_aten(program.get("0.weight")), before.cpu()));
}

TEST(TorchTraining, CannotBeInitialisedOnceItHasTrained) {
  BoundProgram program;
  program.initialize().initialize().train(1);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.initialize(); }),
              HasSubstr("its module has been trained since it was created"));
}

TEST(TorchTraining, TheStepFunctionIsToldWhichStepItMakesAndGetsItsInputs) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  Graph graph;
  const Scope root(graph);
  const Output x = ops::placeholder(root, kFloat, {-1, 2}, "x");
  std::vector<int64_t> numbers;
  std::vector<float> sums;
  const auto step = [&](const TorchStep& step) {
    numbers.push_back(step.number);
    sums.push_back(step.inputs[0].sum().item<float>());
    return net(step.inputs[0]).sum();
  };
  const TorchTraining training = torch_training(root, *net, sgd, step, {.inputs = {x}});
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(root));
  const Callable train = session.make_callable(training.train_op, {x});
  for (int i = 0; i < 3; ++i) train(Tensor::of<float>({1, 2}, {1.0f * static_cast<float>(i), 1}));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
  EXPECT_THAT(sums, ElementsAre(1, 2, 3));
}

TEST(TorchTraining, TheLossIsThatOfTheStepInTheSameRun) {
  torch::nn::Linear net(2, 1);
  Graph graph;
  const Scope root(graph);
  int calls = 0;
  const auto step = [&] { return at::scalar_tensor(++calls * 0.5, at::kDouble); };
  const TorchTraining training = torch_training(root, *net, std::vector<torch::optim::Optimizer*>(), step);
  const Output summary = summary::scalar(root, "loss", training.loss);
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(root));
  const Callable train = session.make_callable(std::vector<Fetch>{training.train_op, training.loss}, {});
  EXPECT_EQ(train()[1].item<float>(), 0.5f);
  session.run(training.train_op);
  EXPECT_EQ(train()[1].item<float>(), 1.5f);
  EXPECT_FALSE(is_side_effect_free({summary})) << "it would make a step";
  std::vector<Tensor> values;
  session.capabilities().step_fetching->request_step_fetch(
      {{summary}, [&](std::vector<Tensor> fetched, std::exception_ptr) { values = fetched; }});
  session.run(training.train_op);
  EXPECT_EQ(values.size(), 1u);
  EXPECT_EQ(calls, 4);
}

TEST(TorchTraining, ALossThatIsNoSingleElementMattersWhereItIsFetched) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (const at::Tensor& loss : {at::Tensor(), at::zeros({3})}) {
    Graph graph;
    const Scope root(graph);
    const TorchTraining training = torch_training(root, *net, sgd, [&] { return loss; });
    DirectSession session(graph, {});
    session.run(ops::global_variables_initializer(root));
    session.run(training.train_op);
    EXPECT_THAT(message_of<InvalidArgumentError>([&] { session.run(training.loss); }),
                HasSubstr("instead of a single element"));
  }
}

// Two parameters that each step sets to the same number, one after the other, and is long in the middle of each.
struct Twins : torch::nn::Module {
  Twins() {
    a = register_parameter("a", at::zeros({1000}));
    b = register_parameter("b", at::zeros({1000}));
    for (const at::Tensor& tensor : {a.detach(), b.detach()}) {
      halves.push_back(tensor.narrow(0, 0, 500));
      halves.push_back(tensor.narrow(0, 500, 500));
    }
  }
  void set(float value) {
    at::NoGradGuard no_grad;
    for (at::Tensor& half : halves) {
      half.fill_(value);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  at::Tensor a, b;
  std::vector<at::Tensor> halves;
};

TEST(TorchTraining, ASnapshotNeverSeesHalfAStep) {
  Twins twins;
  Graph graph;
  const Scope root(graph);
  const TorchTraining training =
      torch_training(root, twins, std::vector<torch::optim::Optimizer*>(), [&](const TorchStep& step) {
        twins.set(static_cast<float>(step.number + 1));
        return at::Tensor();
      });
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(root));
  std::atomic<bool> stop{false};
  std::thread trainer([&, train = session.make_callable(training.train_op)] {
    while (!stop.load()) train();
  });
  const std::vector<Fetch> both{training.model[0], training.model[1], training.global_step};
  std::vector<std::vector<Tensor>> held;
  for (int i = 0; i < 100; ++i) held.push_back(session.run(both, {}, {.snapshot = true}));
  const auto step_now = [&] { return session.run(training.global_step).item<int64_t>(); };
  for (const int64_t last = step_now() + 20; step_now() < last;) {
    const Tensor alone = session.run(training.model[0]);
    EXPECT_EQ(alone.flat<float>().front(), alone.flat<float>().back()) << "one variable is never read in the middle";
  }
  stop = true;
  trainer.join();
  for (const auto& snapshot : held) {
    const auto step = static_cast<float>(snapshot[2].item<int64_t>());
    for (int i : {0, 1}) {
      EXPECT_EQ(snapshot[static_cast<size_t>(i)].flat<float>().front(), step);
      EXPECT_EQ(snapshot[static_cast<size_t>(i)].flat<float>().back(), step) << "it changed after it was taken";
    }
  }
}

TEST(TorchTraining, TheMemoryOfACopyIsUsedAgain) {
  BoundProgram program;
  program.initialize();
  const Tensor held = program.get("0.weight");
  const void* held_at = held.data();
  Tensor other = program.get("0.weight");
  EXPECT_NE(other.data(), held_at);
  const void* other_at = other.data();
  other = Tensor();
  EXPECT_EQ(program.get("0.weight").data(), other_at);
}

TEST(TorchTraining, AStepThatFailsBeforeItChangesAnythingIsAsIfItWereNot) {
  BoundProgram program;
  torch::nn::Linear net(2, 1);
  Graph graph;
  const TorchTraining training = torch_training(Scope(graph), *net, std::vector<torch::optim::Optimizer*>(),
                                                []() -> at::Tensor { throw OutOfRangeError("the input has ended"); });
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(Scope(graph)));
  EXPECT_THROW(session.run(training.train_op), OutOfRangeError);
  EXPECT_EQ(session.run(training.global_step, {}, {.snapshot = true}).item<int64_t>(), 0);
  EXPECT_NO_THROW(session.run(training.model[0], {}, {.snapshot = true}));
}

TEST(TorchTraining, AStepThatFailsHalfwayLeavesNothingToSaveUntilACheckpointIsRestored) {
  const testing::TemporaryDirectory directory;
  BoundProgram program;
  program.initialize().train(2);
  const std::string saved = program.save(directory.file("model"));
  const std::vector<Tensor> before = program.state();
  program.after_step = [] { throw AbortedError("the power went"); };
  EXPECT_THROW(program.train(1), AbortedError);
  program.after_step = nullptr;
  EXPECT_THAT(
      message_of<FailedPreconditionError>([&] { program.save(directory.file("model")); }),
      AllOf(HasSubstr("a step failed after it had changed part of the module"), HasSubstr("(step 2: the power went)")));
  program.restore(saved);
  const std::vector<Tensor> after = program.state();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(identical(before[i], after[i])) << i;
}

TEST(TorchTraining, LibtorchsErrorsCarryTheOperationsName) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  Graph graph;
  const TorchTraining training = torch_training(Scope(graph), *net, sgd, [&] { return net(at::zeros({1, 5})).sum(); });
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(Scope(graph)));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { session.run(training.train_op); }),
              AllOf(HasSubstr("torch_training/step"), HasSubstr("cannot be multiplied")));
}

TEST(TorchTraining, AStepFunctionMayReadItsVariablesButNotRunItself) {
  BoundProgram program;
  program.initialize();
  program.after_step = [&] { program.get("0.weight"); };
  EXPECT_NO_THROW(program.train(1));
  program.after_step = [&] { program.train(1); };
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.train(1); }), HasSubstr("Do it between two steps"));
}

TEST(TorchTraining, OnlyAssignMayWriteItsVariables) {
  BoundProgram program;
  const Variable bias = program.training.model[1];
  const Scope root(program.graph);
  const Operation add = ops::assign_add(root, bias, bias).op();
  const Operation zero = ops::assign(root, bias, ops::constant(root, Tensor::of(std::vector<float>(8, 0)))).op();
  program.initialize();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { program.session->run(add); }),
              HasSubstr("0.bias belongs to the program"));
  program.session->run(zero);
  EXPECT_TRUE(at::equal(program.net->parameters()[1].cpu(), at::zeros({8})));
  EXPECT_TRUE(at::equal(program.net->parameters()[1].cpu(), to_aten(program.get("0.bias"))));
  EXPECT_TRUE(program.net->parameters()[1].requires_grad());
}

TEST(TorchTraining, WhatCheckpointsCannotHoldIsRefusedByName) {
  struct Odd : torch::nn::Module {
    explicit Odd(const at::Tensor& buffer) { register_buffer("odd", buffer); }
  };
  Graph graph;
  Odd half_complex(at::zeros({2}, at::kComplexHalf));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { torch_variables(Scope(graph), half_complex); }),
              AllOf(HasSubstr("odd cannot be saved"), HasSubstr("ComplexHalf")));
  Odd sparse(at::zeros({2}, at::TensorOptions().layout(at::kSparse)));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { torch_variables(Scope(graph), sparse); }),
              AllOf(HasSubstr("odd cannot be saved"), HasSubstr("Sparse")));
}

// An optimizer with a state of its own, for all that one knows.
struct OwnKind : torch::optim::SGD {
  using torch::optim::SGD::SGD;
};

TEST(TorchTraining, AnOptimizerThatIsNotKnownIsRefusedByItsType) {
  torch::nn::Linear net(2, 1);
  OwnKind own(net->parameters(), torch::optim::SGDOptions(0.1));
  Graph graph;
  const std::string message =
      message_of<InvalidArgumentError>([&] { torch_training(Scope(graph), *net, own, [] { return at::Tensor(); }); });
  EXPECT_THAT(message, AllOf(HasSubstr("OwnKind"), HasSubstr("register_optimizer()")));
}

TEST(TorchTraining, AParameterOfTheOptimizerMustBeTheModules) {
  torch::nn::Linear net(2, 1), other(7, 1);
  torch::optim::SGD sgd(other->parameters(), 0.1);
  Graph graph;
  const std::string message =
      message_of<InvalidArgumentError>([&] { torch_training(Scope(graph), *net, sgd, [] { return at::Tensor(); }); });
  EXPECT_THAT(message, HasSubstr("a parameter of shape [1,7] that does not belong to the module"));
}

TEST(TorchTraining, WhatIsAddedToABoundOptimizerIsNoticed) {
  BoundProgram program;
  program.initialize();
  program.optimizer->add_param_group(torch::optim::OptimizerParamGroup(std::vector<at::Tensor>{at::zeros({2})}));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.train(1); }),
              HasSubstr("parameters were added to the optimizer (SGD) after it was bound"));
}

TEST(TorchTraining, AModuleThatChangesItsTypeIsNoticed) {
  BoundProgram program;
  program.initialize();
  program.net->to(at::kDouble);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.state(); }),
              HasSubstr("0.weight was float [8,4] when it was bound, but is double [8,4] now"));
}

struct Growing : torch::nn::Module {
  Growing() { weight = register_parameter("weight", at::zeros({3})); }
  void replace() { parameters_["weight"] = at::zeros({3}).requires_grad_(true); }
  at::Tensor weight;
};

TEST(TorchTraining, WhatIsRegisteredOrReplacedAfterwardsIsNoticed) {
  Growing module;
  Graph graph;
  const std::vector<Variable> model = torch_variables(Scope(graph), module);
  const Operation init = ops::global_variables_initializer(Scope(graph));
  DirectSession session(graph, {});
  session.run(init);
  module.replace();
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { session.run(model[0], {}, {.snapshot = true}); }),
              HasSubstr("weight was replaced by another tensor after its module was bound"));
  module.register_buffer("extra", at::zeros({2}));
  module.replace();
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { session.run(init); }), HasSubstr("Bind a module in its final"));
}

TEST(TorchTraining, WhatIsRegisteredBehindTheOthersIsNoticed) {
  Growing module;
  Graph graph;
  torch_variables(Scope(graph), module);
  module.register_buffer("extra", at::zeros({2}));
  DirectSession session(graph, {});
  EXPECT_THAT(
      message_of<FailedPreconditionError>([&] { session.run(ops::global_variables_initializer(Scope(graph))); }),
      HasSubstr("extra was registered after its module was bound"));
}

TEST(TorchTraining, AModuleIsBoundOnceAtATime) {
  struct Outer : torch::nn::Module {
    Outer() { inner = register_module("inner", torch::nn::Linear(2, 1)); }
    torch::nn::Linear inner{nullptr};
  } outer;
  {
    Graph first, second;
    torch_variables(Scope(first), outer);
    EXPECT_THAT(message_of<AlreadyExistsError>([&] { torch_variables(Scope(second), *outer.inner); }),
                HasSubstr("weight is already bound"));
  }
  Graph third;
  EXPECT_NO_THROW(torch_variables(Scope(third), *outer.inner));
}

TEST(TorchTraining, AStepRecordsForItsBackwardWhateverTheCallerDoes) {
  BoundProgram program(default_adam);
  program.initialize();
  const at::NoGradGuard no_grad;
  EXPECT_NO_THROW(program.train(1));
}

TEST(TorchTraining, StringsAreNoInputOfAStepFunction) {
  torch::nn::Linear net(2, 1);
  Graph graph;
  const Output words = ops::placeholder(Scope(graph), kString, {-1}, "words");
  const auto bind = [&] {
    torch_training(Scope(graph), *net, std::vector<torch::optim::Optimizer*>(), [] { return at::Tensor(); },
                   {.inputs = {words}});
  };
  EXPECT_THAT(message_of<InvalidArgumentError>(bind), HasSubstr("words:0 cannot be an input of a step function"));
}

}  // namespace
}  // namespace longhaul

// What optimizers add to a graph: their operations' names, slots, powers, and where these are; and what they train.
#include <gmock/gmock.h>

#include "longhaul/runtime/ops/optimizer_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST_F(OptimizerTest, TheOperationsAreNamedAsInTensorFlow) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  EXPECT_EQ(AdamOptimizer().minimize(loss).name(), "Adam");
  EXPECT_EQ(MomentumOptimizer(0.1, 0.9).minimize(loss).name(), "Momentum");
  EXPECT_EQ(AdamOptimizer().minimize(loss).name(), "Adam_1");
  EXPECT_TRUE(graph_.find_operation("Adam/update_w/ApplyAdam").valid());
  EXPECT_TRUE(graph_.find_operation("Adam/learning_rate").valid());
  EXPECT_EQ(graph_.collection_of<Operation>(collections::kTrainOp).size(), 3u);
}

TEST_F(OptimizerTest, SlotsAreSavedButNotTrained) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  MomentumOptimizer momentum(0.1, 0.9);
  AdamOptimizer adam;
  momentum.minimize(loss);
  adam.minimize(loss);
  AdagradOptimizer(0.1).minimize(loss);
  RMSPropOptimizer(0.1).minimize(loss);
  AdamOptimizer().minimize(loss);
  EXPECT_THAT(variable_names(), ::testing::ElementsAre("w", "w/Momentum", "beta1_power", "beta2_power", "w/Adam",
                                                       "w/Adam_1", "w/Adagrad", "w/RMSProp", "w/RMSProp_1",
                                                       "beta1_power_1", "beta2_power_1", "w/Adam_2", "w/Adam_3"));
  EXPECT_EQ(ops::trainable_variables(graph_).size(), 1u);
  EXPECT_EQ(momentum.get_slot(w, "momentum")->name(), "w/Momentum");
  EXPECT_EQ(adam.get_slot(w, "v")->name(), "w/Adam_1");
  EXPECT_FALSE(momentum.get_slot(w, "v").has_value());
  EXPECT_EQ(adam.variables().size(), 4u);
}

TEST_F(OptimizerTest, AnOptimizersNameIsThatOfItsSlots) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  EXPECT_EQ(AdamOptimizer(0.001, 0.9, 0.999, 1e-8, "AdamG").minimize(root_.sub("train"), loss).name(), "train/AdamG");
  MomentumOptimizer(0.1, 0.9, false, "Heavy").minimize(loss);
  EXPECT_THAT(variable_names(),
              ::testing::ElementsAre("w", "train/beta1_power", "train/beta2_power", "w/AdamG", "w/AdamG_1", "w/Heavy"));
}

// What TensorFlow 1.15.5 made of the same scopes (docs/compatibility.md).
class OptimizerScopeTest : public OptimizerTest {
 protected:
  using Names = std::vector<std::string>;
  Names names_made_by(Optimizer& optimizer, const Scope& scope, const std::vector<Variable>& variables) {
    const size_t before = optimizer.variables().size();
    Output loss;
    for (const Variable& variable : variables) {
      const Output squares = ops::sum(root_, ops::square(root_, variable));
      loss = loss.valid() ? loss + squares : squares;
    }
    optimizer.minimize(scope, loss, {}, variables);
    Names names;
    for (size_t i = before; i < optimizer.variables().size(); ++i) names.push_back(optimizer.variables()[i].name());
    return names;
  }
  Names names_in(const Scope& scope, const Variable& variable) {
    AdamOptimizer adam;
    return names_made_by(adam, scope, {variable});
  }

  const Variable w_ = variable("w", kStart), u_ = variable("u", kStart);
};

TEST_F(OptimizerScopeTest, SlotsAreInVariableScopesPowersInAllScopes) {
  EXPECT_EQ(names_in(root_, w_), (Names{"beta1_power", "beta2_power", "w/Adam", "w/Adam_1"}));
  EXPECT_EQ(names_in(root_.variable_scope("train"), w_),
            (Names{"train/beta1_power", "train/beta2_power", "train/w/Adam", "train/w/Adam_1"}));
  EXPECT_EQ(names_in(root_.sub("n"), w_), (Names{"n/beta1_power", "n/beta2_power", "w/Adam_2", "w/Adam_3"}));
  EXPECT_EQ(names_in(root_.variable_scope("a").sub("b"), w_),
            (Names{"a/b/beta1_power", "a/b/beta2_power", "a/w/Adam", "a/w/Adam_1"}));
  EXPECT_EQ(names_in(root_.sub("c").variable_scope("d"), w_),
            (Names{"c/d/beta1_power", "c/d/beta2_power", "d/w/Adam", "d/w/Adam_1"}));
  EXPECT_EQ(names_in(root_.variable_scope("e").variable_scope("f"), w_),
            (Names{"e/f/beta1_power", "e/f/beta2_power", "e/f/w/Adam", "e/f/w/Adam_1"}));
}

TEST_F(OptimizerScopeTest, OneThatIsEnteredAgainHasPowersOfItsOwnBesideTheSameSlots) {
  const Scope train = root_.variable_scope("train");
  names_in(train, w_);
  EXPECT_EQ(names_in(root_.variable_scope("train"), u_),
            (Names{"train_1/beta1_power", "train_1/beta2_power", "train/u/Adam", "train/u/Adam_1"}));
  EXPECT_EQ(names_in(train, w_),
            (Names{"train/beta1_power_1", "train/beta2_power_1", "train/w/Adam_2", "train/w/Adam_3"}));
}

TEST_F(OptimizerScopeTest, AVariableKeepsItsOwnScopesBelow) {
  const Scope model = root_.variable_scope("model");
  const Variable v = ops::variable(model, "v", ops::zeros(model, {2}));
  EXPECT_EQ(names_in(root_.variable_scope("model"), v),
            (Names{"model_1/beta1_power", "model_1/beta2_power", "model/model/v/Adam", "model/model/v/Adam_1"}));
  EXPECT_TRUE(graph_.find_operation("model_1/Adam/update_model/v/ApplyAdam").valid());
}

TEST_F(OptimizerScopeTest, ASecondStepAddsOnlyWhatIsMissing) {
  AdamOptimizer adam;
  names_made_by(adam, root_.variable_scope("one"), {w_});
  EXPECT_EQ(names_made_by(adam, root_.variable_scope("two"), {w_, u_}), (Names{"two/u/Adam", "two/u/Adam_1"}));
}

TEST_F(OptimizerScopeTest, SlotsOfSlicesAreSlicesOfOneSlot) {
  const PartitionedVariable table = ops::partitioned_variable(root_, "table", kStart, {.parts = 2});
  MomentumOptimizer momentum(0.1, 0.9);
  EXPECT_EQ(names_made_by(momentum, root_.variable_scope("train"), table.parts()),
            (Names{"train/table/part_0/Momentum", "train/table/part_1/Momentum"}));
  for (const Variable& part : table.parts())
    EXPECT_EQ(momentum.get_slot(part, "momentum")->info().slice->full_name, "train/table/Momentum");
}

TEST_F(OptimizerTest, PowersAreFloatsAsInTensorFlow) {
  const Variable w = variable("w", kStart, kDouble);
  AdamOptimizer adam;
  adam.minimize(ops::sum(root_, ops::square(root_, w)));
  EXPECT_EQ(adam.get_slot(w, "m")->dtype(), kDouble);
  for (const char* name : {"beta1_power", "beta2_power"})
    EXPECT_EQ(graph_.output(std::string(name) + ":0").dtype(), kFloat) << name;
}

TEST_F(OptimizerTest, TheStepIsCountedAfterAllUpdates) {
  const Variable w = variable("w", kStart), step = ops::global_step(root_);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  MomentumOptimizer(0.1, 0.9).minimize(loss, step);
  const Operation count = graph_.operation("Momentum/global_step");
  EXPECT_EQ(count.type(), "AssignAdd");
  EXPECT_THAT(count.control_inputs(), ::testing::ElementsAre(graph_.operation("Momentum/update_w/ApplyMomentum")));
}

TEST_F(OptimizerTest, ALossWithoutAPathToVariablesIsRefused) {
  variable("w", kStart);
  variable("v", kStart);
  const Output loss = ops::constant(root_, 1.f);
  try {
    GradientDescentOptimizer(0.1).minimize(loss);
    FAIL() << "";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("[w, v]"));
  }
}

TEST_F(OptimizerTest, OnlyTheVariablesNamedAreChanged) {
  const Variable w = variable("w", kStart), v = variable("v", kStart);
  const Output loss = ops::sum(root_, ops::mul(root_, w, v));
  const Operation train = GradientDescentOptimizer(0.1).minimize(loss, {}, {v});
  auto session = initialized_session();
  const Tensor before = session->run(w);
  session->run(train);
  EXPECT_TRUE(identical(session->run(w), before));
  EXPECT_FALSE(identical(session->run(v), before));
}

TEST_F(OptimizerTest, TheLearningRateMayBeATensor) {
  const Variable w = variable("w", Tensor::scalar(10.0));
  const Output rate = ops::placeholder(root_, kFloat, {}, "rate");
  const Operation train = GradientDescentOptimizer(rate).minimize(w * 2.0);
  auto session = initialized_session();
  session->run(train, {{rate, Tensor::scalar(1.f)}});
  session->run(train, {{rate, Tensor::scalar(0.5f)}});
  EXPECT_EQ(session->run(w).item<float>(), 7);
}

TEST_F(OptimizerTest, StateIsOnTheDeviceOfItsVariablesAndTakesNoTurn) {  // DS-2
  const Scope scope = root_.with_device(replica_device_setter({.ps_tasks = 2}));
  const Variable second = ops::variable(scope, "w2", Tensor::scalar(1.f));
  const Variable first = ops::variable(scope, "w1", Tensor::scalar(1.f));
  AdamOptimizer(0.1).minimize(scope, ops::mul(scope, first, second));
  EXPECT_EQ(graph_.operation("w2/Adam").device(), "/job:ps/task:0");
  EXPECT_EQ(graph_.operation("w1/Adam_1").device(), "/job:ps/task:1");
  EXPECT_EQ(graph_.operation("beta1_power").device(), "/job:ps/task:1");
  int updates = 0;
  for (const Operation& op : graph_.operations()) {
    if (op.type() != "ApplyAdam") continue;
    ++updates;
    EXPECT_EQ(op.device(), op.inputs()[0].op().device()) << op.name();
  }
  EXPECT_EQ(updates, 2);
  EXPECT_EQ(ops::variable(scope, "w3", Tensor::scalar(1.f)).ref().op().device(), "/job:ps/task:0");
}

}  // namespace
}  // namespace longhaul

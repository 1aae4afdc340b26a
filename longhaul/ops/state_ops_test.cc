#include "longhaul/ops/state_ops.h"

#include <gmock/gmock.h>

#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GlobalStepTest : public ::testing::Test {
 protected:
  Graph graph_;
  const Scope root_{graph_};
};

TEST_F(GlobalStepTest, IsACountOfStepsThatIsNotTrained) {  // GS-1
  const Variable step = ops::create_global_step(root_);
  EXPECT_EQ(step.ref().name(), "global_step:0");
  EXPECT_EQ(step.dtype(), kInt64);
  EXPECT_EQ(step.shape(), Shape());
  EXPECT_THAT(graph_.collection(collections::kGlobalVariables), SizeIs(1));
  EXPECT_THAT(graph_.collection(collections::kGlobalStep), SizeIs(1));
  EXPECT_THAT(graph_.collection(collections::kTrainableVariables), IsEmpty());
  testing::ScriptedSession session(graph_);
  session.run(step.initializer());
  EXPECT_EQ(session.run(step).item<int64_t>(), 0);
}

TEST_F(GlobalStepTest, IsOneInAGraph) {  // GS-1, GS-3
  const Variable step = ops::global_step(root_);
  EXPECT_EQ(ops::global_step(root_).ref(), step.ref());
  EXPECT_THAT(error_of<Error>([&] { ops::create_global_step(root_); }), HasSubstr("already exists"));
  Graph other;
  EXPECT_NO_THROW(ops::create_global_step(Scope(other)));
}

TEST_F(GlobalStepTest, IsFoundOrThereIsNone) {  // GS-2
  EXPECT_FALSE(ops::get_global_step(graph_).has_value());
  const Variable step = ops::variable(root_, "global_step", Tensor::scalar<int32_t>(0));
  EXPECT_EQ(ops::get_global_step(graph_)->ref(), step.ref());
}

TEST_F(GlobalStepTest, IsAnIntegerScalar) {  // GS-2
  ops::variable(root_, "global_step", Tensor::scalar(0.0f));
  EXPECT_THAT(error_of<Error>([&] { ops::get_global_step(graph_); }), HasSubstr("does not have integer type"));
  Graph other;
  ops::variable(Scope(other), "global_step", Tensor::of<int64_t>({0}));
  EXPECT_THAT(error_of<Error>([&] { ops::get_global_step(other); }), HasSubstr("not scalar"));
}

// The names of these tests are what TensorFlow 1.15.5 made of the same scopes.
TEST_F(GlobalStepTest, IsNamedAfterVariableScopesAlone) {  // GS-1, GS-3
  const Variable step = ops::create_global_step(root_.sub("scope").variable_scope("model"));
  EXPECT_EQ(step.name(), "model/global_step");
  EXPECT_EQ(ops::global_step(root_.variable_scope("other")).name(), "model/global_step");
  EXPECT_THAT(error_of<Error>([&] { ops::create_global_step(root_); }), HasSubstr("already exists"));
  Graph other;
  EXPECT_EQ(ops::create_global_step(Scope(other).sub("scope")).name(), "global_step");
}

class VariableScopeTest : public ::testing::Test {
 protected:
  static Variable add(const Scope& scope, std::string_view name) {
    return ops::variable(scope, name, Tensor::of<float>({1, 2}));
  }

  Graph graph_;
  const Scope root_{graph_};
  const Scope first_ = root_.variable_scope("model"), again_ = root_.variable_scope("model");
};

TEST_F(VariableScopeTest, EnteredAgainNamesVariablesAsBefore) {
  EXPECT_EQ(add(first_, "w").name(), "model/w");
  const Variable v = add(again_, "v");
  EXPECT_EQ(v.name(), "model/v");
  EXPECT_EQ(v.initializer().name(), "model/v/Assign");
  EXPECT_EQ(v.initial_value().name(), "model/v/initial_value:0");
  EXPECT_EQ(Output(v).name(), "model/v/read:0");
  EXPECT_EQ(ops::no_op(again_, "other").name(), "model_1/other");
  EXPECT_EQ(add(again_.sub("layer"), "u").name(), "model/layer/u");
}

TEST_F(VariableScopeTest, HasAVariableOnce) {
  add(first_, "w");
  EXPECT_THROW(add(again_, "w"), AlreadyExistsError);
}

TEST_F(VariableScopeTest, NamesVariablesOfAllKinds) {
  const Tensor whole = Tensor::of<float>({1, 2});
  const PartitionedVariable table = ops::partitioned_variable(again_, "table", whole, {.parts = 2});
  EXPECT_EQ(table.name(), "model/table");
  EXPECT_EQ(table[1].name(), "model/table/part_1");
  const auto read = [] { return Tensor::scalar<int64_t>(0); };
  const Variable epoch = ops::external_variable(again_, "epoch", {.dtype = kInt64, .read = read});
  EXPECT_EQ(epoch.name(), "model/epoch");
  EXPECT_EQ(Output(epoch).name(), "model/epoch/read:0");
}

TEST_F(VariableScopeTest, InAScopeOfOperationsIsUnderIt) {
  EXPECT_EQ(add(root_.sub("tower").variable_scope("net"), "w").name(), "tower/net/w");
}

}  // namespace
}  // namespace longhaul

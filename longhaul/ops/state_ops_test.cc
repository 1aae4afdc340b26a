#include "longhaul/ops/state_ops.h"

#include <gmock/gmock.h>

#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GlobalStepTest : public ::testing::Test {
 protected:
  template <typename Function>
  static std::string error_of(Function&& function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

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
  EXPECT_THAT(error_of([&] { ops::create_global_step(root_); }), HasSubstr("already exists"));
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
  EXPECT_THAT(error_of([&] { ops::get_global_step(graph_); }), HasSubstr("does not have integer type"));
  Graph other;
  ops::variable(Scope(other), "global_step", Tensor::of<int64_t>({0}));
  EXPECT_THAT(error_of([&] { ops::get_global_step(other); }), HasSubstr("not scalar"));
}

}  // namespace
}  // namespace longhaul

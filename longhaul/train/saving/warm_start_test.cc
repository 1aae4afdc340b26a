#include "longhaul/train/saving/warm_start.h"

#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A checkpoint with some/v1 = 1, some/v2 = 2, other = 7, table = 0..5 in two parts, and a graph to start from it.
class WarmStart : public ::testing::Test {
 protected:
  WarmStart() {
    Graph trained;
    const Scope root(trained);
    ops::variable(root.within("some"), "v1", Tensor::scalar(1.0f));
    ops::variable(root.within("some"), "v2", Tensor::scalar(2.0f));
    ops::variable(root, "other", Tensor::scalar<int64_t>(7));
    ops::partitioned_variable(root, "table", Tensor::of<float>({6, 1}, {0, 1, 2, 3, 4, 5}), {.parts = 2});
    const auto session = make_scripted_session(trained);
    session->run(ops::global_variables_initializer(root));
    Saver({.graph = &trained}).save(*session, path, 3);
  }
  Variable add(const Scope& scope, const char* name, float value = -1) {
    return ops::variable(scope, name, Tensor::scalar(value));
  }
  // The value that the ordinary init op leaves.
  Tensor initialised(const Output& value) {
    const auto session = make_scripted_session(graph);
    session->run(ops::global_variables_initializer(root));
    return session->run(value);
  }

  testing::TemporaryDirectory directory;
  std::string path = directory.file("model");
  Graph graph;
  Scope root{graph};
};

TEST_F(WarmStart, ANameGoesToAName) {
  const Variable mine = add(root, "mine"), fresh = add(root, "fresh");
  init_from_checkpoint(graph, path + "-3", {{"some/v1", "mine"}});
  EXPECT_EQ(initialised(mine).item<float>(), 1);
  EXPECT_EQ(initialised(fresh).item<float>(), -1);
}

TEST_F(WarmStart, AScopeGoesToAScopeAndADirectoryIsItsLatest) {
  const Variable v1 = add(root.within("deep").within("new"), "v1"), v2 = add(root.within("deep").within("new"), "v2");
  init_from_checkpoint(graph, directory.path(), {{"some/", "deep/new/"}});
  EXPECT_EQ(initialised(v1).item<float>(), 1);
  EXPECT_EQ(initialised(v2).item<float>(), 2);
}

TEST_F(WarmStart, TheTopIsAScopeToo) {
  const Variable v1 = add(root.within("below").within("some"), "v1");
  init_from_checkpoint(graph, path + "-3", {{"/", "below/"}});
  EXPECT_EQ(initialised(v1).item<float>(), 1);
  const Variable again = add(root.within("some"), "v2");
  init_from_checkpoint(graph, path + "-3", {{"some/", "some/"}});
  EXPECT_EQ(initialised(again).item<float>(), 2);
}

TEST_F(WarmStart, ATensorGoesToAVariable) {
  const Variable mine = ops::variable(root, "mine", Tensor::scalar<int64_t>(0));
  init_from_checkpoint(graph, path + "-3", {{"other", mine}});
  EXPECT_EQ(initialised(mine).item<int64_t>(), 7);
}

TEST_F(WarmStart, PartsTakeTheirSlices) {
  const auto three = ops::partitioned_variable(root, "three", Tensor(kFloat, {6, 1}), {.parts = 3});
  const auto whole = ops::variable(root, "whole", Tensor(kFloat, {6, 1}));
  const auto by_name = ops::partitioned_variable(root, "named", Tensor(kFloat, {6, 1}), {.parts = 2});
  init_from_checkpoint(graph, path + "-3", {{"table", three}, {"table", whole}, {"table", "named"}});
  EXPECT_TRUE(identical(initialised(three[1]), Tensor::of<float>({2, 1}, {2, 3})));
  EXPECT_TRUE(identical(initialised(whole), Tensor::of<float>({6, 1}, {0, 1, 2, 3, 4, 5})));
  EXPECT_TRUE(identical(initialised(by_name[1]), Tensor::of<float>({3, 1}, {3, 4, 5})));
}

TEST_F(WarmStart, WhatDependsOnTheVariableBeginsFromItsNewValue) {
  const Variable mine = add(root, "mine");
  init_from_checkpoint(graph, path + "-3", {{"some/v2", mine}});
  const Variable copy = ops::variable(root, "copy", ops::identity(root, Variable(ops::global_variables(graph)[0])));
  EXPECT_EQ(copy.shape(), Shape());
  EXPECT_EQ(initialised(copy).item<float>(), 2);
}

TEST_F(WarmStart, AllThatDoesNotFitIsReportedAtOnceAndNothingIsChanged) {
  const Variable fits = add(root, "fits");
  const Variable shaped = ops::variable(root, "shaped", Tensor::of<float>({1, 2}));
  const Variable typed = ops::variable(root, "typed", Tensor::scalar<int32_t>(0));
  const std::string message = error_of([&] {
    init_from_checkpoint(graph, path + "-3",
                         {{"some/v1", "fits"},
                          {"some/v1", "shaped"},
                          {"some/v1", typed},
                          {"absent", "fits"},
                          {"some/v1", "no_such_variable"},
                          {"some/", "no_such_scope/"}});
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("Shape of variable shaped ([2]) doesn't match with shape of tensor some/v1 ([])"),
                    HasSubstr("dtype of variable typed (int32) doesn't match"),
                    HasSubstr("Tensor absent (fits in the graph) is not found"),
                    HasSubstr("no variable no_such_variable"), HasSubstr("no variables in no_such_scope/")));
  EXPECT_EQ(initialised(fits).item<float>(), -1);
}

TEST_F(WarmStart, AScopeDoesNotGoWithAName) {
  add(root, "mine");
  for (const AssignmentMap& bad : {AssignmentMap{{"some/", "mine"}}, AssignmentMap{{"some/v1", "mine/"}}}) {
    EXPECT_THAT(error_of([&] { init_from_checkpoint(graph, path + "-3", bad); }),
                HasSubstr("should map to scope only"));
  }
}

TEST_F(WarmStart, ItMustComeBeforeTheInitOp) {
  add(root, "mine");
  ops::global_variables_initializer(root);
  EXPECT_THROW(init_from_checkpoint(graph, path + "-3", {{"some/v1", "mine"}}), FailedPreconditionError);
}

TEST_F(WarmStart, ACheckpointThatIsNotThereIsNamed) {
  add(root, "mine");
  EXPECT_THROW(init_from_checkpoint(graph, path + "-4", {{"some/v1", "mine"}}), NotFoundError);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/train/sessions/scaffold.h"

#include "longhaul/ops/input/lookup_ops.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScaffoldTest : public ::testing::Test {
 protected:
  void add_variables() {
    ops::variable(root, "my_var", Tensor::scalar(1.0f));
    ops::local_variable(root, "my_local_var", ops::constant(root, 2.0f));
  }
  std::vector<std::string> strings(Session& session, const Output& output) {
    const Tensor value = session.run(output);
    const auto texts = value.flat<std::string>();
    return {texts.begin(), texts.end()};
  }
  static void run(Session& session, const OpList& ops) {
    for (const Operation& op : ops.operations()) session.run(op);
  }

  Graph graph;
  Scope root{graph};
};

TEST_F(ScaffoldTest, NothingIsThereBeforeItIsFinalized) {  // SC-1
  const Scaffold scaffold;
  EXPECT_TRUE(scaffold.init_op().empty());
  EXPECT_TRUE(scaffold.init_feed_dict().empty());
  EXPECT_FALSE(scaffold.init_fn());
  EXPECT_FALSE(scaffold.ready_op().valid());
  EXPECT_FALSE(scaffold.ready_for_local_init_op().valid());
  EXPECT_TRUE(scaffold.local_init_op().empty());
  EXPECT_FALSE(scaffold.summary_op().valid());
  EXPECT_EQ(scaffold.saver(), nullptr);
}

TEST_F(ScaffoldTest, TheDefaultsInitialiseAndSayWhatIsMissing) {  // SC-2, SC-7
  add_variables();
  Scaffold scaffold;
  scaffold.finalize(graph);
  const auto session = make_scripted_session(graph);
  EXPECT_THAT(strings(*session, scaffold.ready_op()), ElementsAre("my_var", "my_local_var"));
  EXPECT_THAT(strings(*session, scaffold.ready_for_local_init_op()), ElementsAre("my_var"));
  run(*session, scaffold.init_op());
  EXPECT_THAT(strings(*session, scaffold.ready_for_local_init_op()), IsEmpty());
  EXPECT_THAT(strings(*session, scaffold.ready_op()), ElementsAre("my_local_var"));
  run(*session, scaffold.local_init_op());
  EXPECT_THAT(strings(*session, scaffold.ready_op()), IsEmpty());
}

TEST_F(ScaffoldTest, AGraphWithoutVariablesGetsAllOfThemToo) {  // SC-2
  Scaffold scaffold;
  scaffold.finalize(graph);
  const auto session = make_scripted_session(graph);
  run(*session, scaffold.init_op());
  run(*session, scaffold.local_init_op());
  EXPECT_THAT(strings(*session, scaffold.ready_op()), IsEmpty());
  EXPECT_THAT(strings(*session, scaffold.ready_for_local_init_op()), IsEmpty());
  ASSERT_NE(scaffold.saver(), nullptr);
  EXPECT_EQ(scaffold.saver()->save(*session, "nowhere", {}, {.write_meta_graph = false}), "");
}

TEST_F(ScaffoldTest, TheSaverIsSharded) {  // SC-7
  add_variables();
  Scaffold scaffold;
  scaffold.finalize(graph);
  EXPECT_TRUE(scaffold.saver()->to_proto().sharded());
}

TEST_F(ScaffoldTest, TablesAreInitialisedWithLocalVariables) {  // SC-7
  const auto table = ops::hash_table(root,
                                     KeyValueTensorInitializer{ops::constant(root, Tensor::of<std::string>({"a"})),
                                                               ops::constant(root, Tensor::of<int64_t>({7}))},
                                     Tensor::scalar<int64_t>(-1));
  const Output found = table.lookup(root, ops::constant(root, Tensor::of<std::string>({"a"})));
  Scaffold scaffold;
  scaffold.finalize(graph);
  const auto session = make_scripted_session(graph);
  run(*session, scaffold.local_init_op());
  EXPECT_EQ(session->run(found).item<int64_t>(), 7);
}

TEST_F(ScaffoldTest, ASecondOneFindsWhatTheFirstHasMade) {  // unlike SC-3
  add_variables();
  summary::scalar(root, "s", ops::constant(root, 1.0f));
  Scaffold first, second;
  first.finalize(graph);
  second.finalize(graph);
  EXPECT_EQ(first.init_op().operations(), second.init_op().operations());
  EXPECT_EQ(first.local_init_op().operations(), second.local_init_op().operations());
  EXPECT_EQ(first.ready_op(), second.ready_op());
  EXPECT_EQ(first.ready_for_local_init_op(), second.ready_for_local_init_op());
  EXPECT_EQ(first.summary_op(), second.summary_op());
  EXPECT_EQ(first.saver()->to_proto().SerializeAsString(), second.saver()->to_proto().SerializeAsString());
  EXPECT_NE(first.saver(), second.saver());
}

TEST_F(ScaffoldTest, SeveralElementsOfACollectionAreRefused) {  // SC-3
  add_variables();
  const Saver saver({.graph = &graph});
  for (int i = 0; i < 2; ++i) graph.add_to_collection(collections::kSavers, saver.to_proto().SerializeAsString());
  Scaffold scaffold;
  EXPECT_THAT(error_of([&] { scaffold.finalize(graph); }), HasSubstr("More than one item"));
  EXPECT_FALSE(graph.finalized());
}

TEST_F(ScaffoldTest, WhatIsPassedStays) {  // SC-4
  add_variables();
  const Operation init = ops::no_op(root, "my_init"), local_init = ops::no_op(root, "my_local_init");
  const Output ready = ops::constant(root, Tensor::of<std::string>({}), "my_ready");
  Saver saver({.graph = &graph});
  const Scaffold* told = nullptr;
  Scaffold scaffold({.init_op = init,
                     .init_fn = [&](const Scaffold& which, Session&) { told = &which; },
                     .ready_op = ready,
                     .ready_for_local_init_op = ready,
                     .local_init_op = local_init,
                     .summary_op = ready,
                     .saver = &saver});
  scaffold.finalize(graph);
  EXPECT_THAT(scaffold.init_op().operations(), ElementsAre(init));
  EXPECT_THAT(scaffold.local_init_op().operations(), ElementsAre(local_init));
  EXPECT_EQ(scaffold.ready_op(), ready);
  EXPECT_EQ(scaffold.ready_for_local_init_op(), ready);
  EXPECT_EQ(scaffold.summary_op(), ready);
  EXPECT_EQ(scaffold.saver().get(), &saver);
  const auto session = make_scripted_session(graph);
  scaffold.init_fn()(*session);
  EXPECT_EQ(told, &scaffold);
}

TEST_F(ScaffoldTest, WhatIsSwitchedOffIsNotMade) {
  add_variables();
  Scaffold scaffold({.init_op = kNone, .ready_op = kNone, .local_init_op = kNone, .saver = kNone});
  const int before = graph.num_operations();
  scaffold.finalize(graph);
  EXPECT_EQ(graph.num_operations(), before);
  EXPECT_EQ(scaffold.saver(), nullptr);
}

TEST_F(ScaffoldTest, TheGraphIsFinalized) {  // SC-5
  Scaffold scaffold;
  scaffold.finalize(graph);
  EXPECT_THAT(error_of([&] { ops::constant(root, 1.0f); }), HasSubstr("Graph is finalized and cannot be modified"));
}

TEST_F(ScaffoldTest, OneIsForOneGraph) {
  Scaffold scaffold;
  scaffold.finalize(graph);
  scaffold.finalize(graph);
  Graph other;
  EXPECT_THROW(scaffold.finalize(other), FailedPreconditionError);
}

TEST_F(ScaffoldTest, ACopyHasWhatItsOwnOptionsLeaveOpen) {  // SC-6
  add_variables();
  const Operation init = ops::no_op(root, "my_init"), other_init = ops::no_op(root, "other_init");
  std::vector<std::string> called;
  const Scaffold original({.init_op = init,
                           .init_fn = [&](const Scaffold&, Session&) { called.push_back("the original's"); },
                           .local_init_op = init});
  Scaffold copy({.init_op = other_init, .copy_from = &original});
  Scaffold with_function(
      {.init_fn = [&](const Scaffold&, Session&) { called.push_back("its own"); }, .copy_from = &original});
  copy.finalize(graph);
  EXPECT_THAT(copy.init_op().operations(), ElementsAre(other_init));
  EXPECT_THAT(copy.local_init_op().operations(), ElementsAre(init));
  const auto session = make_scripted_session(graph);
  copy.init_fn()(*session);
  with_function.init_fn()(*session);
  EXPECT_THAT(called, ElementsAre("the original's", "its own"));
}

TEST_F(ScaffoldTest, ACopyOfAFinalizedOneHasWhatThatHasMade) {  // SC-6
  add_variables();
  Scaffold original;
  original.finalize(graph);
  const Scaffold copy({.copy_from = &original});
  EXPECT_EQ(copy.init_op().operations(), original.init_op().operations());
  EXPECT_EQ(copy.ready_op(), original.ready_op());
  EXPECT_EQ(copy.saver(), original.saver());
}

TEST_F(ScaffoldTest, ASaverThatNobodyHasBuiltIsBuiltBeforeTheGraphIsFinalized) {
  add_variables();
  const auto deferred = std::make_shared<Saver>(SaverOptions{.graph = &graph, .defer_build = true});
  Scaffold scaffold({.saver = MaybeOwned<Saver>(deferred)});
  scaffold.finalize(graph);
  EXPECT_THROW(deferred->build(), FailedPreconditionError);
  EXPECT_EQ(deferred->saved_tensors().size(), 1u);
}

TEST_F(ScaffoldTest, ASaverThatTheProgramHasBuiltIsLeftAsItIs) {
  add_variables();
  const auto built = std::make_shared<Saver>(SaverOptions{.graph = &graph, .defer_build = true});
  built->build();
  Scaffold scaffold({.saver = MaybeOwned<Saver>(built)});
  EXPECT_NO_THROW(scaffold.finalize(graph));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/ops/data_position.h"

#include <gtest/gtest.h>

#include <set>

#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

class DataPositionTest : public ::testing::Test {
 protected:
  std::vector<int64_t> step(Session& session, const ops::DataPosition& input) {
    const Tensor indices = session.run({Fetch(input.indices), Fetch(input.advance)})[0];
    return {indices.flat<int64_t>().begin(), indices.flat<int64_t>().end()};
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(DataPositionTest, EachEpochTakesEachExampleOnce) {
  const auto input = ops::data_position(root_, {.num_examples = 6, .batch_size = 2, .seed = 3});
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int64_t> seen;
    for (int batch = 0; batch < 3; ++batch) {
      for (int64_t example : step(session, input)) seen.insert(example);
    }
    EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5}));
  }
}

TEST_F(DataPositionTest, GoesOnFromThePositionAlone) {  // IN-12
  const auto input = ops::data_position(root_, {.num_examples = 7, .batch_size = 3, .seed = 5});
  testing::ScriptedSession undisturbed(graph_), restarted(graph_);
  undisturbed.run(input.position.initializer());
  for (int i = 0; i < 4; ++i) step(undisturbed, input);
  const Operation restore =
      ops::assign(root_, input.position, ops::constant(root_, undisturbed.run(input.position))).op();
  restarted.run(restore);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step(restarted, input), step(undisturbed, input));
}

TEST_F(DataPositionTest, EndsAfterItsEpochsWithoutAPartialBatch) {
  const auto input = ops::data_position(root_, {.num_examples = 5, .batch_size = 2, .num_epochs = 1, .shuffle = false});
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  EXPECT_EQ(step(session, input), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(step(session, input), (std::vector<int64_t>{2, 3}));
  EXPECT_THROW(step(session, input), OutOfRangeError);
}

TEST_F(DataPositionTest, IsSavedWithTheModelAndNotTrained) {
  const auto input = ops::data_position(root_, {.num_examples = 5});
  EXPECT_EQ(ops::global_variables(graph_), std::vector<VariableInfo>{input.position.info()});
  EXPECT_TRUE(ops::trainable_variables(graph_).empty());
}

TEST_F(DataPositionTest, RefusesADatasetOfNothing) {
  EXPECT_THROW(ops::data_position(root_, {.num_examples = 0}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul

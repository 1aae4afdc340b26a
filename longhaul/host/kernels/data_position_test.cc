#include "longhaul/ops/input/data_position.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
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

TEST_F(DataPositionTest, ReplicasShareEachStep) {
  std::multiset<int64_t> seen;
  for (int64_t replica = 0; replica < 2; ++replica) {
    const auto input = ops::data_position(
        root_, {.num_examples = 12, .batch_size = 3, .num_epochs = 1, .num_replicas = 2, .replica = replica},
        "replica" + std::to_string(replica));
    testing::ScriptedSession session(graph_);
    session.run(input.position.initializer());
    for (int i = 0; i < 2; ++i) {
      for (int64_t example : step(session, input)) seen.insert(example);
    }
    EXPECT_EQ(session.run(input.position).item<int64_t>(), 12);
    EXPECT_THROW(step(session, input), OutOfRangeError);
  }
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST_F(DataPositionTest, RefusesAReplicaThatThereIsNot) {
  EXPECT_THROW(ops::data_position(root_, {.num_examples = 5, .num_replicas = 2, .replica = 2}), InvalidArgumentError);
}

class LoadBatchTest : public DataPositionTest {
 protected:
  static std::shared_ptr<const Dataset> numbers() {
    return make_dataset(100, [](int64_t i) { return Example{Tensor::of<int64_t>({i, -i})}; });
  }

  std::vector<int64_t> step(Session& session, const ops::LoadedBatch& input) {
    const Tensor batch = session.run({Fetch(input.components[0]), Fetch(input.advance)})[0];
    return {batch.flat<int64_t>().begin(), batch.flat<int64_t>().end()};
  }
};

TEST_F(LoadBatchTest, ReplicasThatShareAPositionAreToldOnce) {
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) warnings.push_back(text);
  });
  DataLoader loader(numbers(), {.batch_size = 4, .seed = 3});
  const auto input = ops::load_batch(root_, &loader, "shared");
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  for (int i = 0; i < 50; ++i) step(session, input);
  for (int i = 0; i < 3; ++i) session.run(input.advance);  // as after a rollback: one jump
  for (int i = 0; i < 50; ++i) step(session, input);
  EXPECT_EQ(warnings, std::vector<std::string>());
  for (int i = 0; i < 50; ++i) {
    step(session, input);
    session.run(input.advance);  // by another one
  }
  set_log_sink(before);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("the position of input shared moves on by more than the batches"), std::string::npos);
}

TEST_F(LoadBatchTest, GivesWhatDataPositionGivesTheIndicesOf) {
  DataLoader loader(numbers(), {.batch_size = 4, .seed = 3});
  const auto input = ops::load_batch(root_, &loader);
  const auto beside = ops::data_position(root_, {.num_examples = 100, .batch_size = 4, .seed = 3}, "beside");
  EXPECT_EQ(input.components[0].dtype(), kInt64);
  EXPECT_EQ(input.components[0].shape(), (Shape{4, 2}));
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  session.run(beside.position.initializer());
  for (int i = 0; i < 60; ++i) {
    const std::vector<int64_t> batch = step(session, input), indices = DataPositionTest::step(session, beside);
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(batch[2 * j], indices[j]);
  }
}

TEST_F(LoadBatchTest, GoesOnFromThePositionAlone) {
  std::vector<std::vector<int64_t>> undisturbed;
  DataLoader loader(numbers(), {.batch_size = 4, .seed = 3});
  const auto input = ops::load_batch(root_, &loader);
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  for (int i = 0; i < 30; ++i) undisturbed.push_back(step(session, input));
  for (const int64_t restored : {0, 7, 29}) {
    Graph graph;
    DataLoader another(numbers(), {.batch_size = 4, .seed = 3});
    const auto again = ops::load_batch(Scope(graph), &another);
    const Operation restore = ops::assign(Scope(graph), again.position, ops::constant(Scope(graph), restored * 4)).op();
    testing::ScriptedSession restarted(graph);
    restarted.run(restore);
    for (size_t i = static_cast<size_t>(restored); i < 30; ++i) EXPECT_EQ(step(restarted, again), undisturbed[i]);
  }
}

// Else a summary of the loss would be computed by the way, on a batch of its own.
TEST_F(LoadBatchTest, IsInputOfTheTrainingSteps) {
  DataLoader loader(numbers(), {});
  const auto input = ops::load_batch(root_, &loader);
  EXPECT_NE(input.components[0].op().traits() & kTakesInput, 0u);
  EXPECT_TRUE(ops::trainable_variables(graph_).empty());
}

TEST_F(LoadBatchTest, AStepThatFailsTakesNothing) {
  bool damaged = true;
  const auto dataset = make_dataset(100, [&](int64_t i) -> Example {
    if (i == 5 && damaged) throw DataLossError("damaged");
    return {Tensor::scalar(i)};
  });
  DataLoader loader(dataset, {.batch_size = 4, .shuffle = false, .num_threads = 0});
  const auto input = ops::load_batch(root_, &loader);
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  step(session, input);
  EXPECT_THROW(step(session, input), DataLossError);
  EXPECT_EQ(session.run(input.position).item<int64_t>(), 4);
  damaged = false;
  EXPECT_EQ(step(session, input), (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST_F(LoadBatchTest, RefusesABatchUnlikeTheFirstExample) {
  const auto dataset = make_dataset(8, [](int64_t i) {
    if (i < 4) return Example{Tensor::scalar(i)};
    return i < 6 ? Example{Tensor::of<int64_t>({i})} : Example{Tensor::scalar(i), Tensor::scalar(i)};
  });
  DataLoader loader(dataset, {.batch_size = 2, .shuffle = false});
  const auto input = ops::load_batch(root_, &loader);
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  step(session, input);
  step(session, input);
  EXPECT_THROW(step(session, input), InvalidArgumentError);  // another shape
  session.run(ops::assign(root_, input.position, ops::constant(root_, int64_t{6})).op());
  EXPECT_THROW(step(session, input), InvalidArgumentError);  // another number of components
}

TEST_F(LoadBatchTest, ARemainderHasAnUnknownSize) {
  DataLoader loader(numbers(), {.batch_size = 64, .num_epochs = 1, .drop_remainder = false});
  const auto input = ops::load_batch(root_, &loader);
  EXPECT_EQ(input.components[0].shape(), (Shape{-1, 2}));
  testing::ScriptedSession session(graph_);
  session.run(input.position.initializer());
  EXPECT_EQ(step(session, input).size(), 128u);
  EXPECT_EQ(step(session, input).size(), 72u);
  EXPECT_THROW(step(session, input), OutOfRangeError);
}

}  // namespace
}  // namespace longhaul

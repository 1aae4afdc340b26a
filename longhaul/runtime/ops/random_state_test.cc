// Random numbers of operations go on with the checkpoint that a training is restored from.
#include "longhaul/ops/random_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A model whose training has noise, dropout and a shuffle in it, so that its weights tell of every number drawn.
class RandomModel {
 public:
  explicit RandomModel(uint64_t seed = 5, bool with_probe = false) {
    graph.set_seed(seed);
    const Output x = ops::randn(root, {8, 4}, kFloat, "noise");
    const Output shuffled = ops::random_shuffle(root, ops::reshape(root, x, {32}), 0, "order");
    const Output dropped = ops::dropout(root, ops::reshape(root, shuffled, {8, 4}), 0.5);
    Output loss = ops::sum(root, ops::matmul(root, with_probe ? probed(dropped) : dropped, weights));
    train = GradientDescentOptimizer(0.01).minimize(loss, step);
    look = ops::randn(root, {2}, kFloat, "look");
    session = std::make_unique<DirectSession>(graph, SessionOptions{});
    saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
  }
  void initialize() { session->run(ops::global_variables_initializer(root)); }
  void steps(int count) {
    for (int i = 0; i < count; ++i) session->run(train);
  }
  Tensor values() { return session->run(weights); }

  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root);
  Variable weights = ops::variable(root, "weights", ops::randn(root, {4, 1}, kFloat, "first"));
  Operation train;
  Output look;
  std::function<void()> probe;  // called in each step, when it has drawn and has not written yet
  std::unique_ptr<DirectSession> session;
  std::unique_ptr<Saver> saver;

 private:
  Output probed(const Output& x) {
    const auto call = [this](const std::vector<Tensor>& inputs) {
      if (probe) probe();
      return inputs;
    };
    const Operation op = ops::host_function(root, {x}, {kFloat}, call);
    return ops::reshape(root, op.output(), {8, 4});
  }
};

class RandomStateTest : public ::testing::Test {
 protected:
  testing::TemporaryDirectory directory;
  const std::string path = directory.file("model");
};

TEST_F(RandomStateTest, ARestoredTrainingDrawsWhatAnUndisturbedOneWould) {
  RandomModel undisturbed;
  undisturbed.initialize();
  undisturbed.steps(5);
  undisturbed.saver->save(*undisturbed.session, path);
  undisturbed.steps(5);

  RandomModel resumed;
  resumed.saver->restore(*resumed.session, path);
  resumed.steps(5);
  EXPECT_TRUE(identical(resumed.values(), undisturbed.values()));
}

TEST_F(RandomStateTest, SoDoesOneWithoutASeed) {
  RandomModel undisturbed(0);
  undisturbed.initialize();
  undisturbed.steps(2);
  undisturbed.saver->save(*undisturbed.session, path);
  undisturbed.steps(3);
  RandomModel resumed(0);
  resumed.saver->restore(*resumed.session, path);
  resumed.steps(3);
  EXPECT_TRUE(identical(resumed.values(), undisturbed.values()));
}

TEST_F(RandomStateTest, ASaveInTheMiddleOfAStepHasTheNumbersOfTheStepBefore) {
  RandomModel undisturbed(5, /*with_probe=*/true);
  undisturbed.initialize();
  undisturbed.steps(3);
  undisturbed.probe = [&] { undisturbed.saver->save(*undisturbed.session, path); };
  undisturbed.steps(1);
  undisturbed.probe = nullptr;
  undisturbed.steps(2);
  RandomModel resumed(5, true);
  resumed.saver->restore(*resumed.session, path);
  EXPECT_EQ(resumed.session->run(resumed.step).item<int64_t>(), 3);
  resumed.steps(3);
  EXPECT_TRUE(identical(resumed.values(), undisturbed.values()));
}

TEST_F(RandomStateTest, AStepThatFailedIsRepeatedWithTheNumbersItHad) {
  RandomModel failed(5, /*with_probe=*/true);
  failed.initialize();
  failed.steps(2);
  failed.probe = [] { throw UnavailableError("no data"); };
  EXPECT_THROW(failed.steps(1), Error);
  failed.probe = nullptr;
  failed.saver->save(*failed.session, path);
  failed.steps(2);
  RandomModel resumed(5, true);
  resumed.saver->restore(*resumed.session, path);
  resumed.steps(2);
  EXPECT_TRUE(identical(resumed.values(), failed.values()));
}

TEST_F(RandomStateTest, RunsThatChangeNothingLeaveTheTrainingAsItIs) {
  RandomModel plain, looked_at;
  for (RandomModel* model : {&plain, &looked_at}) {
    model->initialize();
    model->steps(2);
  }
  looked_at.session->run(looked_at.graph.output("noise:0"));
  plain.steps(2);
  looked_at.steps(2);
  EXPECT_TRUE(identical(plain.values(), looked_at.values()));
}

TEST_F(RandomStateTest, ButTheyGoOnAfterARestoreToo) {
  RandomModel before;
  before.initialize();
  before.session->run(before.look);
  before.saver->save(*before.session, path);
  RandomModel after;
  after.saver->restore(*after.session, path);
  EXPECT_TRUE(identical(after.session->run(after.look), before.session->run(before.look)));
}

TEST_F(RandomStateTest, StatesAreThoseOfTheOperationsThatATrainingDrawsFrom) {  // unlike SA-1
  RandomModel model;
  model.initialize();
  model.steps(4);
  model.saver->save(*model.session, path);
  const BundleReader reader(FileSystem::real(), path);
  EXPECT_THAT(reader.keys(),
              UnorderedElementsAre("global_step", "weights", "longhaul/random/noise", "longhaul/random/order",
                                   "longhaul/random/dropout/bernoulli", "longhaul/random/look"));
  const Tensor state = reader.read("longhaul/random/dropout/bernoulli");
  EXPECT_EQ(state.shape(), Shape{3});
  EXPECT_EQ(state.flat<int64_t>()[1], 4);
  EXPECT_EQ(state.flat<int64_t>()[2], 0);
}

TEST_F(RandomStateTest, OfAGivenListTheyAreNoPart) {
  RandomModel model;
  model.initialize();
  Saver({.graph = &model.graph, .var_list = {{model.weights}}}).save(*model.session, path);
  EXPECT_THAT(BundleReader(FileSystem::real(), path).keys(), ElementsAre("weights"));
}

TEST_F(RandomStateTest, ACheckpointWithoutThemStartsThemOverAndIsWarnedOfOnce) {
  RandomModel model;
  model.initialize();
  Saver({.graph = &model.graph, .var_list = {{model.weights, model.step}}}).save(*model.session, path);
  model.steps(3);
  const Tensor first = model.values();
  const LogRecorder log;
  model.saver->restore(*model.session, path);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("no random state for 4 operations"));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("longhaul/random/noise"));
  EXPECT_EQ(model.session->run(model.graph.output("longhaul/random_state/noise:0")).flat<int64_t>()[1], 0);
  model.steps(3);
  EXPECT_TRUE(identical(model.values(), first));
}

TEST_F(RandomStateTest, OneWithThemIsNotWarnedOf) {
  RandomModel model;
  model.initialize();
  model.saver->save(*model.session, path);
  const LogRecorder log;
  model.saver->restore(*model.session, path);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

TEST_F(RandomStateTest, AnImportedGraphSavesAndRestoresThemByItsDefinition) {
  RandomModel model;
  model.initialize();
  model.steps(2);
  Saver again(model.graph, model.saver->to_proto());
  again.save(*model.session, path);
  model.steps(2);
  const Tensor expected = model.values();
  again.restore(*model.session, path);
  model.steps(2);
  EXPECT_TRUE(identical(model.values(), expected));
  const auto& tensors = again.saved_tensors();
  EXPECT_EQ(std::count_if(tensors.begin(), tensors.end(), [](auto& tensor) { return tensor.optional; }), 4);
}

TEST_F(RandomStateTest, SaversShareTheOperationsThatReadThem) {
  RandomModel model;
  const auto count = [&] {
    const auto all = model.graph.operations();
    return std::count_if(all.begin(), all.end(), [](auto& op) { return op.type() == "RandomState"; });
  };
  EXPECT_EQ(count(), 4);
  Saver({.graph = &model.graph});
  EXPECT_EQ(count(), 4);
}

}  // namespace
}  // namespace longhaul

// The names of layers' variables, and checkpoints that are exchanged by them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

using ops::LayerNames;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Layers on an input of ones, and a session with their variables.
struct Layers {
  explicit Layers(std::string_view scope = "") : scope(scope.empty() ? root : root.variable_scope(scope)) {}

  Output add_dense(std::string_view name, LayerNames names, int64_t units = 3) {
    return ops::dense(scope, ops::ones(root, {1, 2}), units, name, names);
  }
  Output add_convolution(LayerNames names) {
    return ops::conv2d_layer(scope, ops::ones(root, {1, 2, 5, 5}), 4, 3, {}, "", names);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const VariableInfo& info : ops::global_variables(graph)) names.push_back(info.name());
    return names;
  }
  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph);
    session->run(ops::global_variables_initializer(root));
    return session;
  }

  Graph graph;
  Scope root{graph};
  const Scope scope;
};

std::vector<std::string> names_of_layers(LayerNames names) {
  Layers model("net");
  model.add_dense("", names);
  model.add_dense("", names);
  model.add_dense("head", names);
  model.add_convolution(names);
  ops::batch_norm_variables(model.scope, 3, kFloat, "", names);
  return model.names();
}

TEST(LayerNames, AreOurOwnUnlessOthersAreAskedFor) {
  EXPECT_THAT(
      names_of_layers(LayerNames::kLonghaul),
      ElementsAre("net/dense/weights", "net/dense/bias", "net/dense_1/weights", "net/dense_1/bias", "net/head/weights",
                  "net/head/bias", "net/conv2d/weights", "net/conv2d/bias", "net/batch_norm/weight",
                  "net/batch_norm/bias", "net/batch_norm/running_mean", "net/batch_norm/running_var"));
}

// What tf.layers made of these layers in TensorFlow 1.15.5.
TEST(LayerNames, AreThoseOfTfLayers) {
  EXPECT_THAT(names_of_layers(LayerNames::kTfLayers),
              ElementsAre("net/dense/kernel", "net/dense/bias", "net/dense_1/kernel", "net/dense_1/bias",
                          "net/head/kernel", "net/head/bias", "net/conv2d/kernel", "net/conv2d/bias",
                          "net/batch_normalization/gamma", "net/batch_normalization/beta",
                          "net/batch_normalization/moving_mean", "net/batch_normalization/moving_variance"));
}

// What tf.contrib.layers made of them, batch_norm with scale=True.
TEST(LayerNames, AreThoseOfSlim) {
  EXPECT_THAT(names_of_layers(LayerNames::kSlim),
              ElementsAre("net/fully_connected/weights", "net/fully_connected/biases", "net/fully_connected_1/weights",
                          "net/fully_connected_1/biases", "net/head/weights", "net/head/biases", "net/Conv/weights",
                          "net/Conv/biases", "net/BatchNorm/gamma", "net/BatchNorm/beta", "net/BatchNorm/moving_mean",
                          "net/BatchNorm/moving_variance"));
}

TEST(LayerNames, InAScopeThatIsEnteredAgainAreTaken) {
  Layers model("net");
  model.add_dense("", LayerNames::kTfLayers);
  const Scope again = model.root.variable_scope("net");
  EXPECT_THROW(ops::dense(again, ops::ones(model.root, {1, 2}), 3, "", LayerNames::kTfLayers), AlreadyExistsError);
  ops::dense(again, ops::ones(model.root, {1, 2}), 3, "other", LayerNames::kTfLayers);
  EXPECT_EQ(model.names().back(), "net/other/bias");
}

class LayerExchange : public ::testing::Test {
 protected:
  std::string save(Layers& model, Session& session, std::optional<std::vector<SaveEntry>> entries = {}) {
    return Saver({.graph = &model.graph, .var_list = std::move(entries)}).save(session, directory_.file("model"));
  }
  // The layer `hidden` by the names of a layer `dense` of tf.layers.
  static std::vector<SaveEntry> renamed(const Layers& model) {
    std::vector<SaveEntry> entries;
    for (const VariableInfo& info : ops::global_variables(model.graph))
      entries.emplace_back(info.name() == "hidden/weights" ? "dense/kernel" : "dense/bias", info);
    return entries;
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(LayerExchange, AListOfNamesGivesAndTakesThem) {
  Layers ours, theirs;
  const Output our_result = ours.add_dense("hidden", LayerNames::kLonghaul);
  const Output their_result = theirs.add_dense("", LayerNames::kTfLayers);
  auto our_session = ours.initialized_session(), their_session = theirs.initialized_session();
  EXPECT_FALSE(identical(our_session->run(our_result), their_session->run(their_result)));

  Saver({.graph = &theirs.graph}).restore(*their_session, save(ours, *our_session, renamed(ours)));
  EXPECT_TRUE(identical(our_session->run(our_result), their_session->run(their_result)));

  their_session->run(ops::assign(theirs.root, Variable(ops::global_variables(theirs.graph)[0]),
                                 ops::constant(theirs.root, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}))));
  const std::string path = save(theirs, *their_session);
  Saver({.graph = &ours.graph, .var_list = renamed(ours)}).restore(*our_session, path);
  EXPECT_THAT(our_session->run(our_result).flat<float>(), ElementsAre(5, 7, 9));
}

TEST_F(LayerExchange, AKernelOfTensorFlowsLayoutIsRefusedWithBothShapes) {
  Layers ours, theirs;
  ops::variable(theirs.root.within("conv2d"), "kernel", ops::zeros(theirs.root, {3, 3, 2, 4}));
  ops::variable(theirs.root.within("conv2d"), "bias", ops::zeros(theirs.root, {4}));
  ours.add_convolution(LayerNames::kTfLayers);
  auto our_session = ours.initialized_session(), their_session = theirs.initialized_session();
  const std::string path = save(theirs, *their_session);
  try {
    Saver({.graph = &ours.graph}).restore(*our_session, path);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("conv2d/kernel is [4,2,3,3] in the graph, [3,3,2,4] in the checkpoint"));
  }
}

}  // namespace
}  // namespace longhaul

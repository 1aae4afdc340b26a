// What a saver adds to the graph, run by the real session: other programs run it by the names in the SaverDef.
#include <gtest/gtest.h>

#include <numeric>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

class SaverGraph : public ::testing::TestWithParam<bool> {
 protected:
  void set(DirectSession& session, const Variable& variable, float value) {
    session.run(variable.initializer(), {{variable.initial_value(), Tensor::scalar(value)}});
  }
  testing::TemporaryDirectory directory;
  Graph graph;
  Scope root{graph};
  Variable a = ops::variable(root.with_device("/cpu:1"), "a", Tensor::scalar(1.0f));
  Variable b = ops::variable(root.with_device("/cpu:0"), "b", Tensor::scalar(2.0f));
};

TEST_P(SaverGraph, SavesAndRestoresByTheNamesOfItsDef) {
  const Saver saver({.graph = &graph, .sharded = GetParam()});
  const proto::SaverDef def = saver.to_proto();
  DirectSession session(graph, {.device_count = {{"CPU", 2}}});
  set(session, a, 3);
  set(session, b, 4);
  const Tensor path = Tensor::scalar(directory.file("model"));
  EXPECT_EQ(session.run(def.save_tensor_name(), {{def.filename_tensor_name(), path}}).item<std::string>(),
            directory.file("model"));
  EXPECT_EQ(BundleReader(FileSystem::real(), directory.file("model")).num_shards(), GetParam() ? 2 : 1);
  set(session, a, 0);
  set(session, b, 0);
  session.run(def.restore_op_name(), {{def.filename_tensor_name(), path}});
  EXPECT_EQ(session.run(a).item<float>(), 3);
  EXPECT_EQ(session.run(b).item<float>(), 4);
}

// A table of [10,3] in so many parts, and the momentum of its rows after a step.
struct PartitionedModel {
  explicit PartitionedModel(int parts, float start) {
    std::vector<float> values(30);
    std::iota(values.begin(), values.end(), start);
    table = ops::partitioned_variable(root, "table", Tensor::of<float>({10, 3}, values), {.parts = parts});
    Output loss = ops::constant(root, 0.0f);
    for (const Variable& part : table.parts()) loss = loss + ops::sum(root, part * part);
    MomentumOptimizer optimizer(0.1, 0.9);
    train = optimizer.minimize(loss);
    for (const Variable& part : table.parts()) slots.push_back(*optimizer.get_slot(part, "momentum"));
    session = std::make_unique<DirectSession>(graph, SessionOptions{});
    session->run(ops::global_variables_initializer(root));
    session->run(train);
  }
  std::vector<float> momentum() {
    std::vector<float> all;
    for (const Variable& slot : slots) {
      const Tensor value = session->run(slot);
      all.insert(all.end(), value.flat<float>().begin(), value.flat<float>().end());
    }
    return all;
  }
  Graph graph;
  Scope root{graph};
  PartitionedVariable table;
  Operation train;
  std::vector<Variable> slots;
  std::unique_ptr<DirectSession> session;
};

TEST(PartitionedModel, ItsSlotsAreRestoredIntoAnotherNumberOfParts) {
  const testing::TemporaryDirectory directory;
  PartitionedModel from(2, 1), to(3, 100);
  ASSERT_NE(from.momentum(), to.momentum());
  Saver({.graph = &from.graph}).save(*from.session, directory.file("model"));
  Saver({.graph = &to.graph}).restore(*to.session, directory.file("model"));
  EXPECT_EQ(from.momentum(), to.momentum());
}

INSTANTIATE_TEST_SUITE_P(Sharded, SaverGraph, ::testing::Bool());

}  // namespace
}  // namespace longhaul

#include "longhaul/proto/serialize.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model on two devices, saved in a data file for each.
class ShardedSaver : public ::testing::Test {
 protected:
  ShardedSaver() {
    session->run(ops::global_variables_initializer(root));
    options = {.graph = &graph, .sharded = true, .files = &files, .clock = &clock};
  }
  void set(const Variable& variable, float value) {
    session->run(variable.initializer(), {{variable.initial_value(), Tensor::scalar(value)}});
  }

  testing::TemporaryDirectory directory;
  std::string path = directory.file("model");
  testing::FaultyFileSystem files;
  testing::FakeClock clock;
  Graph graph;
  Scope root{graph};
  Variable second = ops::variable(root.with_device("/cpu:1"), "a", Tensor::scalar(1.0f));
  Variable first = ops::variable(root.with_device("/cpu:0"), "b", Tensor::scalar(2.0f));
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
  SaverOptions options;
};

TEST_F(ShardedSaver, ACheckpointIsOneIndexAndADataFileForEachDevice) {  // SA-60, SA-61, CB-1
  Saver saver(options);
  EXPECT_EQ(saver.save(*session, path), path);
  EXPECT_THAT(files.list(directory.path()), ElementsAre("checkpoint", "model.data-00000-of-00002",
                                                        "model.data-00001-of-00002", "model.index", "model.meta"));
  const BundleReader reader(files, path);
  EXPECT_EQ(reader.num_shards(), 2);
  EXPECT_THAT(reader.verify(), IsEmpty());
}

TEST_F(ShardedSaver, ShardsAreNumberedByTheNamesOfTheDevices) {  // SA-62
  Saver saver(options);
  std::vector<std::string> order;
  for (const auto& tensor : saver.saved_tensors()) order.push_back(tensor.name + std::to_string(tensor.shard));
  EXPECT_THAT(order, ElementsAre("b0", "a1"));
}

TEST_F(ShardedSaver, ItsDefinitionAndItsNodesSaySo) {  // SA-10
  const Saver saver(options);
  const proto::SaverDef def = saver.to_proto();
  EXPECT_TRUE(def.sharded());
  EXPECT_EQ(def.save_tensor_name(), "save/Identity:0");
  for (const char* name :
       {"save/StringJoin", "save/num_shards", "save/ShardedFilename", "save/ShardedFilename_1", "save/SaveV2",
        "save/SaveV2_1", "save/MergeV2Checkpoints", "save/restore_shard", "save/restore_shard_1", "save/restore_all"}) {
    EXPECT_TRUE(graph.find_operation(name)) << name;
  }
}

TEST_F(ShardedSaver, ItIsRestoredWhateverTheLayoutOfDevices) {  // SA-60
  Saver(options).save(*session, path);
  Graph other;
  const Scope scope(other);
  const Variable a = ops::variable(scope.with_device("/cpu:0"), "a", Tensor::scalar(0.0f));
  const Variable b = ops::variable(scope, "b", Tensor::scalar(0.0f));
  for (const bool sharded : {false, true}) {
    const auto fresh = make_scripted_session(other);
    Saver({.graph = &other, .sharded = sharded}).restore(*fresh, path);
    EXPECT_EQ(fresh->run(a).item<float>(), 1) << sharded;
    EXPECT_EQ(fresh->run(b).item<float>(), 2) << sharded;
  }
}

TEST_F(ShardedSaver, IsMadeAgainFromItsDefinition) {
  const proto::SaverDef def = Saver(options).to_proto();
  Saver again({.graph = &graph, .saver_def = def, .files = &files, .clock = &clock});
  again.save(*session, path);
  EXPECT_EQ(BundleReader(files, path).num_shards(), 2);
  set(first, 9);
  again.restore(*session, path);
  EXPECT_EQ(session->run(first).item<float>(), 2);
  EXPECT_TRUE(again.to_proto().sharded());
}

TEST_F(ShardedSaver, TheIndexIsTheLastOfTheCheckpointAndTheStateComesAfterIt) {  // unlike SA-25
  options.max_to_keep = 1;
  Saver saver(options);
  saver.save(*session, path, 1);
  const size_t before = files.operations().size();
  saver.save(*session, path, 2);
  std::vector<std::string> order;
  const auto operations = files.operations();
  for (size_t i = before; i < operations.size(); ++i) {
    const std::string name = operations[i].substr(operations[i].rfind(' ') + 1);
    if (operations[i].starts_with("rename")) order.push_back(name);
    if (operations[i].starts_with("remove model-1.index")) order.push_back("removal");
  }
  EXPECT_THAT(order, ElementsAre("model-2.data-00000-of-00002", "model-2.data-00001-of-00002", "model-2.meta",
                                 "model-2.index", "checkpoint", "removal"));
}

TEST_F(ShardedSaver, WhatFellOutIsDeletedWithAllItsDataFiles) {  // SA-61
  options.max_to_keep = 2;
  Saver saver(options);
  for (int n = 1; n <= 3; ++n) saver.save(*session, path, n);
  const auto names = files.list(directory.path());
  EXPECT_EQ(names.size(), 2u * 5 + 1 - 2);
  for (const std::string& name : names) EXPECT_FALSE(name.starts_with("model-1")) << name;
}

TEST_F(ShardedSaver, AFailureAtAnyOperationLeavesNothingHalfWritten) {
  Saver(options).save(*session, path, 1);
  const size_t before = files.operations().size();
  Saver(options).save(*session, path, 2);
  const int count = static_cast<int>(files.operations().size() - before);
  for (int n = 0; n < count; ++n) {
    remove_checkpoint(files, path + "-2");
    files.fail_operation(n);
    error_of([&] { Saver(options).save(*session, path, 2); });
    files.heal();
    const bool there = checkpoint_exists(files, path + "-2");
    for (const std::string& name : files.list(directory.path())) {
      EXPECT_EQ(name.find("tempstate"), std::string::npos) << n << name;
      EXPECT_TRUE(there || !name.starts_with("model-2") || name == "model-2.meta") << n << name;
    }
    EXPECT_TRUE(!there || BundleReader(files, path + "-2").verify().empty()) << n;
  }
}

TEST_F(ShardedSaver, AFullDiskIsSaid) {
  files.fail_writes_after(2);
  Saver saver(options);
  EXPECT_THROW(saver.save(*session, path), ResourceExhaustedError);
  EXPECT_THAT(files.list(directory.path()), IsEmpty());
}

TEST_F(ShardedSaver, TheStateFilesNameIsFreeForIt) {  // SA-23
  Saver saver(options);
  const std::string taken = directory.file("checkpoint");
  EXPECT_EQ(saver.save(*session, taken), taken);
  EXPECT_EQ(read_checkpoint_state(files, directory.path()).state.model_checkpoint_path, taken);
  set(first, 9);
  saver.restore(*session, taken);
  EXPECT_EQ(session->run(first).item<float>(), 2);
}

TEST_F(ShardedSaver, ASaveableStaysOnOneDevice) {  // SA-62
  const auto restore = [](const Scope& scope, const std::vector<Output>&) { return ops::no_op(scope); };
  options.var_list.emplace();
  options.var_list->push_back(Saveable{.name = "both", .parts = {{"x", first}, {"y", second}}, .restore = restore});
  EXPECT_THAT(error_of([&] { Saver{options}; }),
              HasSubstr("All tensors of a saveable object must be on the same device: both"));
}

TEST_F(ShardedSaver, TheSameGraphGivesTheSameNodes) {  // SA-7, unlike SA-62
  const auto build = [] {
    Graph twin;
    const Scope scope(twin);
    for (int i = 19; i >= 0; --i) {
      ops::variable(scope.with_device(i % 2 == 0 ? "/cpu:0" : "/cpu:1"), "v" + std::to_string(i), Tensor::scalar(1.0f));
    }
    const Saver saver({.graph = &twin, .sharded = true});
    return proto::serialize(saver.export_meta_graph());
  };
  const std::string once = build();
  for (int n = 0; n < 9; ++n) EXPECT_EQ(build(), once);
}

TEST_F(ShardedSaver, WhatIsOnAnotherDeviceIsReadOnTheCpuOfItsTask) {  // SA-8
  Graph placed;
  ops::variable(Scope(placed).with_device("/job:ps/device:GPU:0"), "v", Tensor::scalar(1.0f));
  const Saver saver({.graph = &placed, .sharded = true});
  EXPECT_EQ(saver.saved_tensors()[0].read.op().device(), "/job:ps/device:CPU:0");
  EXPECT_EQ(placed.operation("save/SaveV2").device(), "/job:ps/device:CPU:0");
  EXPECT_EQ(placed.operation("save/Assign").device(), "/job:ps/device:GPU:0");
}

}  // namespace
}  // namespace longhaul

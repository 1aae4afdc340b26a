#include <google/protobuf/util/message_differencer.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/trackable_object_graph.pb.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using SaverOptionsTest = SaverFixture;

TEST_F(SaverOptionsTest, TheirDefaultsAreTheOriginals) {  // SA-1
  const SaverOptions defaults;
  EXPECT_FALSE(defaults.var_list || defaults.saver_def);
  EXPECT_FALSE(defaults.reshape || defaults.sharded || defaults.restore_sequentially || defaults.defer_build ||
               defaults.allow_empty || defaults.pad_step_number || defaults.save_relative_paths);
  EXPECT_EQ(defaults.max_to_keep, 5);
  EXPECT_EQ(defaults.keep_checkpoint_every_n_hours, 10000);
  EXPECT_EQ(defaults.name, "save");
  EXPECT_EQ(defaults.filename, "model");
  EXPECT_EQ(defaults.write_version, proto::SaverDef::V2);
}

TEST_F(SaverOptionsTest, ALimitOfBytesPerSecondIsKept) {
  testing::FakeClock clock(testing::FakeClock::Waits::kPassTime);
  Graph large;
  const Variable v = ops::variable(Scope(large), "v", Tensor(kFloat, {1024, 1024}));
  const auto large_session = make_scripted_session(large);
  large_session->run(v.initializer());
  const Seconds start = clock.now();
  Saver({.graph = &large, .max_bytes_per_second = 1 << 20, .clock = &clock}).save(*large_session, path);
  EXPECT_NEAR((clock.now() - start).count(), 4, 0.3);  // 4 MiB; the last piece is not waited for
  EXPECT_THAT(error_of([&] { Saver({.graph = &large, .name = "other", .max_bytes_per_second = -1}); }),
              HasSubstr("SaverOptions::max_bytes_per_second is -1"));
}

TEST_F(SaverOptionsTest, ReshapeTakesAnyShapeWithAsManyElements) {  // SA-42
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  Graph wide, tall;
  const Variable from = ops::variable(Scope(wide), "v", Tensor::of<float>({2, 3}, values));
  const auto first = make_scripted_session(wide);
  first->run(from.initializer());
  Saver({.graph = &wide}).save(*first, path);

  const Variable to = ops::variable(Scope(tall), "v", Tensor(kFloat, {3, 2}));
  const Variable more = ops::variable(Scope(tall), "more", Tensor(kFloat, {7}));
  const auto second = make_scripted_session(tall);
  EXPECT_THAT(error_of([&] { Saver({.var_list = {{to}}}).restore(*second, path); }),
              HasSubstr("Assign requires shapes of both tensors to match."));
  Saver reshaping({.var_list = {{to}}, .reshape = true, .name = "reshaping"});
  reshaping.restore(*second, path);
  EXPECT_TRUE(identical(second->run(to), Tensor::of<float>({3, 2}, values)));
  Saver({.graph = &tall, .saver_def = reshaping.to_proto()}).restore(*second, path);
  Saver too_many({.var_list = {{{"v", more}}}, .reshape = true, .name = "too_many"});
  EXPECT_THAT(error_of([&] { too_many.restore(*second, path); }),
              HasSubstr("Assign requires shapes of both tensors to match. v is [7] in the graph, [2,3]"));
}

TEST_F(SaverOptionsTest, SequentiallyEachIsReadAfterTheOneBeforeIsAssigned) {
  options.restore_sequentially = true;
  Saver saver(options);
  EXPECT_TRUE(graph.operation("save/RestoreV2").control_inputs().empty());
  EXPECT_THAT(graph.operation("save/RestoreV2_1").control_inputs(), ElementsAre(graph.operation("save/Assign")));
  EXPECT_THAT(graph.operation("save/RestoreV2_2").control_inputs(), ElementsAre(graph.operation("save/Assign_1")));
  saver.save(*session, path);
  set(a, 7);
  set(b, 7);
  saver.restore(*session, path);
  EXPECT_EQ(get(a), 1);
  EXPECT_EQ(get(b), 2);
}

TEST_F(SaverOptionsTest, VersionV1IsSaidNotToBeSupported) {  // unlike SA-28
  options.write_version = proto::SaverDef::V1;
  EXPECT_THROW(Saver{options}, UnimplementedError);
  options.write_version = proto::SaverDef::V2;
  proto::SaverDef def = Saver(options).to_proto();
  def.set_version(proto::SaverDef::V1);
  EXPECT_THROW(Saver(graph, def), UnimplementedError);
}

TEST_F(SaverOptionsTest, ADefinitionSaysWhatIsSavedAndHowManyAreKept) {
  options.max_to_keep = 1;
  const proto::SaverDef def = Saver(options).to_proto();
  SaverOptions again{.graph = &graph, .saver_def = def, .files = &files, .clock = &clock};
  Saver saver(again);
  saver.save(*session, path, 1);
  saver.save(*session, path, 2);
  EXPECT_FALSE(exists(path + "-1"));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(saver.to_proto(), def));
  again.var_list = {{a}};
  EXPECT_THROW(Saver{again}, InvalidArgumentError);
}

TEST_F(SaverOptionsTest, ADefinitionOfAnotherGraphIsRefused) {
  const proto::SaverDef def = Saver(options).to_proto();
  Graph other;
  EXPECT_THROW(Saver(other, def), NotFoundError);
  proto::SaverDef wrong = def;
  wrong.set_save_tensor_name("a:0");
  EXPECT_THROW(Saver(graph, wrong), InvalidArgumentError);
  wrong = def;
  wrong.set_restore_op_name("a");
  EXPECT_THAT(error_of([&] { Saver(graph, wrong); }), HasSubstr("does not restore"));
}

// What tf.train.Checkpoint writes: the tensors under keys of objects, and a table of the objects.
class ObjectCheckpoint : public SaverFixture {
 protected:
  ObjectCheckpoint() {
    proto::TrackableObjectGraph objects;
    objects.add_nodes();
    BundleWriter writer(files, path);
    for (const auto& [name, value] : {std::pair("a", 11.0f), std::pair("b", 12.0f)}) {
      auto* attribute = objects.add_nodes()->add_attributes();
      attribute->set_name("VARIABLE_VALUE");
      attribute->set_full_name(name);
      attribute->set_checkpoint_key(std::string("model/") + name + "/.ATTRIBUTES/VARIABLE_VALUE");
      writer.add(attribute->checkpoint_key(), Tensor::scalar(value));
    }
    writer.add("_CHECKPOINTABLE_OBJECT_GRAPH", Tensor::scalar(proto::serialize(objects)));
    writer.finish();
  }
};

TEST_F(ObjectCheckpoint, IsRestoredByTheNamesInItsTable) {  // SA-48
  options.var_list = {{a, b}};
  Saver saver(options);
  const int nodes = graph.num_operations();
  const LogRecorder log;
  saver.restore(*session, path);
  EXPECT_EQ(get(a), 11);
  EXPECT_EQ(get(b), 12);
  EXPECT_THAT(log.text(), HasSubstr("Restoring an object-based checkpoint using a name-based saver"));
  saver.restore(*session, path);
  EXPECT_EQ(graph.num_operations(), nodes);
}

TEST_F(ObjectCheckpoint, WhatItHasNotIsNamed) {  // SA-48
  Saver saver(options);
  EXPECT_THAT(error_of([&] { saver.restore(*session, path); }),
              AllOf(HasSubstr("Could not find some variables"), HasSubstr("global_step")));
  EXPECT_THROW(saver.restore(*session, path), NotFoundError);
  EXPECT_EQ(get(a), 1);
}

TEST_F(ObjectCheckpoint, ShapesAreCompared) {
  Graph other;
  const Variable wide = ops::variable(Scope(other), "a", Tensor::of<float>({1, 2}));
  const auto fresh = make_scripted_session(other);
  EXPECT_THAT(error_of([&] { Saver({.graph = &other}).restore(*fresh, path); }),
              HasSubstr("Assign requires shapes of both tensors to match."));
}

TEST_F(ObjectCheckpoint, AGenuineOneIsRestored) {  // SA-48
  const char* folder = std::getenv("LONGHAUL_FIXTURES");
  LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
  const std::string prefix = std::string(folder) + "/checkpoints/tf-lso_ckpt_tf2.2/ckpt";
  const BundleReader reader(files, prefix);
  proto::TrackableObjectGraph objects;
  ASSERT_TRUE(objects.ParseFromString(reader.read("_CHECKPOINTABLE_OBJECT_GRAPH").item<std::string>()));
  Graph model;
  std::vector<std::pair<Variable, std::string>> expected;
  for (const auto& node : objects.nodes()) {
    for (const auto& attribute : node.attributes()) {
      const std::string& name = attribute.full_name();
      if (name.empty() || model.find_operation(name)) continue;
      const Tensor value = reader.read(attribute.checkpoint_key());
      expected.emplace_back(ops::variable(Scope(model), name, Tensor(value.dtype(), value.shape())),
                            attribute.checkpoint_key());
    }
  }
  ASSERT_GE(expected.size(), 2u);
  const auto fresh = make_scripted_session(model);
  Saver({.graph = &model}).restore(*fresh, prefix);
  for (const auto& [variable, key] : expected) EXPECT_TRUE(identical(fresh->run(variable), reader.read(key))) << key;
}

}  // namespace
}  // namespace longhaul

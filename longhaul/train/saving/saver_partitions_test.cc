#include <numeric>

#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/variable.pb.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counting(const Shape& shape, float start = 0) {
  Tensor tensor(kFloat, shape);
  std::iota(tensor.mutable_flat<float>().begin(), tensor.mutable_flat<float>().end(), start);
  return tensor;
}

// A table of [10,3], held in so many parts (0: in one ordinary variable), in a graph of its own.
struct Model {
  explicit Model(int parts, int axis = 0, float start = 0) {
    const Tensor value = counting({10, 3}, start);
    if (parts == 0) {
      whole = ops::variable(root, "table", value);
    } else {
      table = ops::partitioned_variable(root, "table", value, {.parts = parts, .axis = axis});
    }
    session->run(ops::global_variables_initializer(root));
  }
  std::vector<float> values() {
    std::vector<float> all;
    if (table.parts().empty()) {
      const Tensor value = session->run(whole);
      all.assign(value.flat<float>().begin(), value.flat<float>().end());
    }
    for (const Variable& part : table.parts()) {
      const Tensor value = session->run(part);
      all.insert(all.end(), value.flat<float>().begin(), value.flat<float>().end());
    }
    return all;
  }

  Graph graph;
  Scope root{graph};
  Variable whole;
  PartitionedVariable table;
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
};

std::vector<float> counted() {
  const Tensor value = counting({10, 3});
  return {value.flat<float>().begin(), value.flat<float>().end()};
}

class PartitionedSaver : public ::testing::Test {
 protected:
  testing::TemporaryDirectory directory;
  std::string path = directory.file("model");
  FileSystem& files = FileSystem::real();
};

TEST_F(PartitionedSaver, AnyNumberOfPartsIsRestoredIntoAnyOther) {  // SA-63, CB-33
  for (const int saved : {0, 2, 3}) {
    Model from(saved);
    Saver({.graph = &from.graph}).save(*from.session, path);
    for (const int restored : {0, 1, 2, 3}) {
      Model to(restored, 0, 100);
      Saver({.graph = &to.graph}).restore(*to.session, path);
      EXPECT_EQ(to.values(), counted()) << saved << " parts restored into " << restored;
    }
  }
}

TEST_F(PartitionedSaver, PartsAreCutAlongAnyAxis) {
  Model from(2, /*axis=*/1);
  EXPECT_THAT(from.table[1].info().slice->offset, ElementsAre(0, 2));
  EXPECT_TRUE(
      identical(from.session->run(from.table[1]), Tensor::of<float>({10, 1}, {2, 5, 8, 11, 14, 17, 20, 23, 26, 29})));
  Saver({.graph = &from.graph}).save(*from.session, path);
  EXPECT_TRUE(identical(BundleReader(files, path).read("table"), counting({10, 3})));
}

TEST_F(PartitionedSaver, TheFileHasTheWholeShapeAndTheSlices) {  // CB-30, CB-34
  Model from(3);
  Saver({.graph = &from.graph}).save(*from.session, path);
  const BundleReader reader(files, path);
  EXPECT_THAT(reader.keys(), ElementsAre("table"));
  EXPECT_EQ(reader.entry("table").shape, Shape({10, 3}));
  EXPECT_EQ(reader.entry("table").slices.size(), 3u);
  const auto slices = from.graph.operation("save/SaveV2/shape_and_slices").attr<Tensor>("value");
  EXPECT_THAT(slices.flat<std::string>(), ElementsAre("10 3 0,4:0,3", "10 3 4,3:0,3", "10 3 7,3:0,3"));
}

TEST_F(PartitionedSaver, AListOrAMapOfNamesDoesTheSame) {  // SA-63, SA-2
  Model from(2);
  Saver({.var_list = {{from.table}}, .name = "list"}).save(*from.session, path);
  EXPECT_THAT(BundleReader(files, path).keys(), ElementsAre("table"));
  Saver({.var_list = {{{"other", from.table.parts()}}}, .name = "named"}).save(*from.session, path);
  EXPECT_THAT(BundleReader(files, path).keys(), ElementsAre("other"));
  Model to(3, 0, 100);
  Saver({.var_list = {{{"other", to.table}}}}).restore(*to.session, path);
  EXPECT_EQ(to.values(), counted());
}

TEST_F(PartitionedSaver, PartsMayLieOnDifferentDevices) {
  Graph graph;
  const Scope root(graph);
  const auto part = [](const Scope& scope, const SaveSliceInfo& slice) {
    return ops::constant(scope, counting(Shape(slice.shape), static_cast<float>(slice.offset[0] * 3)), "value");
  };
  std::vector<Variable> parts;
  const PartitionedVariable model = ops::partitioned_variable(root, "table", {10, 3}, {.parts = 2}, part);
  for (size_t i = 0; i < 2; ++i) {
    parts.push_back(ops::variable(root.with_device("/cpu:" + std::to_string(i)), "part" + std::to_string(i),
                                  model[i].initial_value(), {.slice = model[i].info().slice}));
  }
  const auto session = make_scripted_session(graph);
  session->run(ops::global_variables_initializer(root));
  Saver({.var_list = {{PartitionedVariable(parts)}}, .sharded = true}).save(*session, path);
  const BundleReader reader(files, path);
  EXPECT_EQ(reader.num_shards(), 2);
  EXPECT_TRUE(identical(reader.read("table"), counting({10, 3})));
}

TEST_F(PartitionedSaver, NamesThatMeetAreRefused) {  // SA-2
  Graph graph;
  const Scope root(graph);
  const Variable v1 = ops::variable(root, "v1", Tensor::of<float>({20}));
  const Variable v2 = ops::variable(root, "v2", Tensor::of<float>({20}), {.slice = SaveSliceInfo{"v1", {1}, {0}, {1}}});
  EXPECT_THAT(error_of([&] { Saver({.var_list = {{v1, v2}}}); }), HasSubstr("same name: v1"));
  EXPECT_NO_THROW(Saver({.var_list = {{{"vee1", v1}, {"other", std::vector<Variable>{v2}}}}}));
  const Tensor value = counting({4, 5});
  const auto p1 = ops::partitioned_variable(root, "p_v1", value, {.parts = 2});
  EXPECT_THAT(error_of([&] { Saver({.var_list = {{p1, p1}}}); }), HasSubstr("same name: p_v1"));
  EXPECT_THAT(error_of([&] { Saver({.var_list = {{{"x", std::vector<Variable>{v1}}}}}); }),
              HasSubstr("Slices must all be slices: v1"));
  EXPECT_THAT(error_of([&] { Saver({.var_list = {{{"x", std::vector<Variable>{v2, p1[0]}}}}}); }),
              HasSubstr("Slices must all be from the same tensor: v1 != p_v1"));
}

TEST_F(PartitionedSaver, ANameThatIsNotCutLikeThatIsNamedWithBothShapes) {
  Model from(2);
  Saver({.graph = &from.graph}).save(*from.session, path);
  Graph other;
  const auto table = ops::partitioned_variable(Scope(other), "table", counting({10, 4}), {.parts = 2});
  const auto session = make_scripted_session(other);
  EXPECT_THAT(error_of([&] { Saver({.graph = &other}).restore(*session, path); }),
              AllOf(HasSubstr("table is [10,4] in the graph, [10,3] in the checkpoint")));
}

TEST_F(PartitionedSaver, WhatCannotBeCutIsRefused) {
  Graph graph;
  const Scope root(graph);
  for (const Partitioning& bad : {Partitioning{0, 0}, Partitioning{11, 0}, Partitioning{2, 2}, Partitioning{2, -1}}) {
    EXPECT_THROW(ops::partitioned_variable(root, "p", counting({10, 3}), bad), InvalidArgumentError);
  }
  const auto wrong = [](const Scope& scope, const SaveSliceInfo&) { return ops::constant(scope, 1.0f); };
  EXPECT_THROW(ops::partitioned_variable(root, "q", {10, 3}, {.parts = 2}, wrong), InvalidArgumentError);
  EXPECT_THROW(PartitionedVariable(std::vector<Variable>()), InvalidArgumentError);
}

TEST_F(PartitionedSaver, StringsAreCutToo) {
  Graph graph;
  const auto words =
      ops::partitioned_variable(Scope(graph), "words", Tensor::of<std::string>({"a", "b", "c"}), {.parts = 2});
  const auto session = make_scripted_session(graph);
  session->run(ops::global_variables_initializer(Scope(graph)));
  EXPECT_TRUE(identical(session->run(words[1]), Tensor::of<std::string>({"c"})));
}

TEST_F(PartitionedSaver, TheMetaGraphSaysWhichPartsTheyAre) {
  Model model(2);
  const proto::MetaGraphDef meta = Saver({.graph = &model.graph}).export_meta_graph();
  proto::VariableDef def;
  ASSERT_TRUE(def.ParseFromString(meta.collection_def().at("variables").bytes_list().value(1)));
  EXPECT_EQ(def.save_slice_info_def().full_name(), "table");
  EXPECT_THAT(def.save_slice_info_def().full_shape(), ElementsAre(10, 3));
  EXPECT_THAT(def.save_slice_info_def().var_offset(), ElementsAre(5, 0));
  EXPECT_THAT(def.save_slice_info_def().var_shape(), ElementsAre(5, 3));
}

}  // namespace
}  // namespace longhaul

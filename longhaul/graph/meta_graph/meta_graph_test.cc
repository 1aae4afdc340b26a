#include "longhaul/graph/meta_graph/meta_graph.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/scope.h"
#include "longhaul/proto/error_codes.pb.h"
#include "longhaul/proto/queue_runner.pb.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/variable.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class MetaGraphTest : public ::testing::Test {
 protected:
  static Output constant(const Scope& scope, std::string_view name, Tensor value) {
    const DType dtype = value.dtype();
    return scope.add("Const", name, {}, {{"value", std::move(value)}, {"dtype", dtype}}).output();
  }
  static VariableInfo variable(const Scope& scope, const std::string& name, bool trainable = true) {
    const Attrs attrs = {
        {"dtype", kFloat}, {"shape", Shape{}}, {"container", std::string()}, {"shared_name", std::string()}};
    VariableInfo info{.ref = scope.add("VariableV2", name, {}, attrs).output()};
    const Scope inner = scope.within(name);
    info.initial_value = constant(inner, "initial_value", Tensor::scalar(1.f));
    info.initializer = inner.add("Assign", "Assign", {info.ref, info.initial_value}, {{"validate_shape", true}});
    info.read = inner.add("Identity", "read", {info.ref}).output();
    info.trainable = trainable;
    scope.graph().add_to_collection(collections::kGlobalVariables, info);
    if (trainable) scope.graph().add_to_collection(collections::kTrainableVariables, info);
    return info;
  }

  // Operations named as a saver's, for one variable.
  static proto::SaverDef saver(const Scope& scope, const VariableInfo& variable) {
    const Output path = constant(scope, "Const", Tensor::scalar("model"));
    const Output name = constant(scope, "names", Tensor::of<std::string>({variable.name()}));
    const std::vector<DType> dtypes{kFloat};
    const Operation save = scope.add("SaveV2", "SaveV2", {path, name, name, variable.read}, {{"dtypes", dtypes}});
    const Output control =
        scope.with_control_dependencies({save}).add("Identity", "control_dependency", {path}).output();
    const Operation restore = scope.add("RestoreV2", "RestoreV2", {path, name, name}, {{"dtypes", dtypes}});
    const Operation put = scope.add("Assign", "Assign", {variable.ref, restore.output()});
    const Operation all = scope.with_control_dependencies({put}).add("NoOp", "restore_all");
    proto::SaverDef def;
    def.set_filename_tensor_name(path.name());
    def.set_save_tensor_name(control.name());
    def.set_restore_op_name(all.name());
    return def;
  }

  static proto::QueueRunnerDef queue_runner(const std::string& queue) {
    proto::QueueRunnerDef def;
    def.set_queue_name(queue);
    def.add_enqueue_op_name(queue + "/enqueue");
    def.set_close_op_name(queue + "/close");
    def.set_cancel_op_name(queue + "/cancel");
    def.add_queue_closed_exception_types(proto::error::OUT_OF_RANGE);
    return def;
  }

  static std::string text_of(const proto::MetaGraphDef& meta) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(meta, &text);
    return text;
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(MetaGraphTest, AnExportOfTheImportIsTheSame) {  // SA-90, PR-3, PR-5
  const VariableInfo v = variable(root_, "v");
  VariableInfo part = variable(root_, "part", /*trainable=*/false);
  part.slice = SaveSliceInfo{.full_name = "whole", .full_shape = {4}, .offset = {2}, .shape = {2}};
  const proto::QueueRunnerDef runner = queue_runner("queue");
  graph_.add_to_collection("int_collection", int64_t{3});
  graph_.add_to_collection("float_collection", 3.5f);
  graph_.add_to_collection("string_collection", std::string("hello"));
  graph_.add_to_collection("variable_collection", v);
  graph_.add_to_collection(collections::kLocalVariables, part);
  graph_.add_to_collection(collections::kQueueRunners, runner.SerializeAsString());
  graph_.add_to_collection("user_defined_string_collection", runner.DebugString());
  graph_.add_to_collection("user_defined_bytes_collection", runner.SerializeAsString());
  graph_.add_to_collection("user_defined_any_collection",
                           AnyMessage{"type.googleapis.com/tensorflow.QueueRunnerDef", runner.SerializeAsString()});
  graph_.add_to_collection(collections::kInitOp, v.initializer);
  graph_.add_to_collection(collections::kSummaries, v.read);
  const proto::SaverDef def = saver(root_.sub("save"), v);
  graph_.add_to_collection(collections::kSavers, def.SerializeAsString());
  const proto::MetaGraphDef before = export_meta_graph(graph_, {.saver_def = def});
  EXPECT_EQ(before.collection_def().size(), 14u);
  EXPECT_FALSE(before.meta_info_def().tensorflow_version().empty());
  EXPECT_FALSE(before.meta_info_def().tensorflow_git_version().empty());

  Graph other;
  const ImportedMetaGraph imported = import_scoped_meta_graph(other, before);
  EXPECT_EQ(text_of(export_meta_graph(other, {.saver_def = before.saver_def()})), text_of(before));
  EXPECT_THAT(imported.variables, ElementsAre(Pair("part:0", ::testing::_), Pair("v:0", ::testing::_)));
  ASSERT_EQ(other.collection_of<VariableInfo>("variable_collection").size(), 1u);
  EXPECT_EQ(other.collection_of<VariableInfo>("variable_collection")[0].initial_value.name(), "v/initial_value:0");
  EXPECT_EQ(other.collection_of<VariableInfo>(collections::kLocalVariables)[0].slice->offset, part.slice->offset);
  EXPECT_EQ(other.collection_of<Operation>(collections::kInitOp)[0].name(), "v/Assign");
  proto::QueueRunnerDef back;
  ASSERT_TRUE(back.ParseFromString(other.collection_of<std::string>(collections::kQueueRunners)[0]));
  EXPECT_EQ(back.queue_closed_exception_types(0), 11);
}

TEST_F(MetaGraphTest, AScopeGoesBeforeTheNamesInCollections) {  // SA-96, QR-9
  const VariableInfo v = variable(root_, "v");
  const proto::SaverDef def = saver(root_.sub("save"), v);
  graph_.add_to_collection(collections::kSavers, def.SerializeAsString());
  graph_.add_to_collection(collections::kQueueRunners, queue_runner("queue").SerializeAsString());
  graph_.add_to_collection("my_variables", v);
  graph_.add_to_collection("texts", std::string("v"));
  graph_.add_to_collection(collections::kInitOp, v.initializer);
  Graph other;
  const ImportedMetaGraph imported =
      import_scoped_meta_graph(other, export_meta_graph(graph_), {.import_scope = "tower"});
  EXPECT_EQ(imported.graph.prefix, "tower/");
  EXPECT_EQ(imported.variables.at("v:0").read.name(), "tower/v/read:0");
  EXPECT_EQ(other.collection_of<VariableInfo>("my_variables")[0].name(), "tower/v");
  EXPECT_EQ(other.collection_of<std::string>("texts")[0], "v");
  EXPECT_EQ(other.collection_of<Operation>(collections::kInitOp)[0].name(), "tower/v/Assign");
  proto::SaverDef savers;
  ASSERT_TRUE(savers.ParseFromString(other.collection_of<std::string>(collections::kSavers)[0]));
  EXPECT_EQ(savers.restore_op_name(), "tower/save/restore_all");
  EXPECT_EQ(savers.filename_tensor_name(), "tower/save/Const:0");
  proto::QueueRunnerDef runner;
  ASSERT_TRUE(runner.ParseFromString(other.collection_of<std::string>(collections::kQueueRunners)[0]));
  EXPECT_EQ(runner.DebugString(), queue_runner("tower/queue").DebugString());
}

TEST_F(MetaGraphTest, ACollectionThatNamesWhatIsNotThereIsRefused) {
  const VariableInfo v = variable(root_, "v");
  graph_.add_to_collection(collections::kInitOp, v.initializer);
  const auto refusal = [&](auto change) {
    proto::MetaGraphDef meta = export_meta_graph(graph_);
    change(&meta);
    Graph other;
    return error_of<InvalidArgumentError>([&] { import_scoped_meta_graph(other, meta); });
  };
  EXPECT_THAT(refusal([](auto* meta) {
                (*meta->mutable_collection_def())["init_op"].mutable_node_list()->set_value(0, "gone");
              }),
              AllOf(HasSubstr("init_op"), HasSubstr("'gone' is not in the graph")));
  EXPECT_THAT(refusal([](auto* meta) {
                (*meta->mutable_collection_def())["variables"].mutable_bytes_list()->set_value(0, "\xff");
              }),
              AllOf(HasSubstr("variables"), HasSubstr("an element is not a VariableDef")));
  EXPECT_THAT(refusal([](auto* meta) {
                proto::VariableDef def;
                std::string* bytes =
                    (*meta->mutable_collection_def())["variables"].mutable_bytes_list()->mutable_value(0);
                def.ParseFromString(*bytes);
                def.set_snapshot_name("w/read:0");
                *bytes = def.SerializeAsString();
              }),
              HasSubstr("variable v:0: the graph has no w/read:0"));
  proto::MetaGraphDef meta = export_meta_graph(graph_);
  proto::VariableDef resource;
  resource.set_variable_name("v:0");
  resource.set_is_resource(true);
  (*meta.mutable_collection_def())["variables"].mutable_bytes_list()->set_value(0, resource.SerializeAsString());
  Graph other;
  EXPECT_THAT(error_of<UnimplementedError>([&] { import_scoped_meta_graph(other, meta); }),
              HasSubstr("variable v:0: resource variables are not supported"));
}

// TensorFlow 1.2 wrote neither initial values nor what is trainable.
TEST_F(MetaGraphTest, VariablesOfOlderWritersAreCompleted) {
  variable(root_, "v");
  variable(root_, "u", /*trainable=*/false);
  proto::MetaGraphDef meta = export_meta_graph(graph_);
  for (const char* key : {"variables", "trainable_variables"}) {
    for (std::string& bytes : *(*meta.mutable_collection_def())[key].mutable_bytes_list()->mutable_value()) {
      proto::VariableDef def;
      ASSERT_TRUE(def.ParseFromString(bytes));
      def.clear_trainable();
      def.clear_initial_value_name();
      bytes = def.SerializeAsString();
    }
  }
  Graph other;
  const VariablesByName variables = import_scoped_meta_graph(other, meta).variables;
  EXPECT_TRUE(variables.at("v:0").trainable);
  EXPECT_FALSE(variables.at("u:0").trainable);
  EXPECT_EQ(variables.at("v:0").initial_value.name(), "v/initial_value:0");
}

TEST_F(MetaGraphTest, TwoSaversAreTwoElements) {  // SA-92
  const proto::SaverDef first = saver(root_.sub("save"), variable(root_, "v"));
  const proto::SaverDef second = saver(root_.sub("save"), variable(root_, "w"));
  graph_.add_to_collection(collections::kSavers, first.SerializeAsString());
  graph_.add_to_collection(collections::kSavers, second.SerializeAsString());
  const proto::MetaGraphDef meta = export_meta_graph(graph_);
  EXPECT_FALSE(meta.has_saver_def());
  EXPECT_THAT(meta.collection_def().at("savers").bytes_list().value(),
              ElementsAre(first.SerializeAsString(), second.SerializeAsString()));
}

TEST_F(MetaGraphTest, ExtraneousSaversAreClearedOnDemand) {  // SA-93
  const VariableInfo v = variable(root_, "v");
  const proto::SaverDef own = saver(root_.sub("save"), v);
  const int nodes = graph_.num_operations();
  const proto::SaverDef other = saver(root_.sub("save"), v);
  graph_.add_to_collection(collections::kSavers, own.SerializeAsString());
  graph_.add_to_collection(collections::kSavers, other.SerializeAsString());
  const proto::MetaGraphDef all = export_meta_graph(graph_, {.saver_def = own});
  EXPECT_EQ(all.graph_def().node_size(), graph_.num_operations());
  const proto::MetaGraphDef cleared = export_meta_graph(graph_, {.saver_def = own, .clear_extraneous_savers = true});
  EXPECT_EQ(cleared.graph_def().node_size(), nodes);
  EXPECT_THAT(cleared.collection_def().at("savers").bytes_list().value(), ElementsAre(own.SerializeAsString()));
  EXPECT_EQ(cleared.saver_def().DebugString(), own.DebugString());
  Graph imported;
  EXPECT_EQ(import_scoped_meta_graph(imported, cleared).variables.size(), 1u);
}

// As init_from_checkpoint() adds it.
TEST_F(MetaGraphTest, AVariableThatBeginsFromACheckpointIsNoSaver) {
  VariableInfo v = variable(root_, "v");
  const proto::SaverDef own = saver(root_.sub("save"), v);
  const Scope start = root_.within("v").sub("checkpoint_initializer");
  const Output prefix = constant(start, "prefix", Tensor::scalar("pretrained"));
  const Output names = constant(start, "names", Tensor::of<std::string>({"v"}));
  v.initial_value =
      start.add("RestoreV2", "RestoreV2", {prefix, names, names}, {{"dtypes", std::vector<DType>{kFloat}}}).output();
  v.initializer = start.add("Assign", "Assign", {v.ref, v.initial_value}, {{"validate_shape", true}});
  graph_.replace_variable(v);
  const proto::MetaGraphDef cleared = export_meta_graph(graph_, {.saver_def = own, .clear_extraneous_savers = true});
  EXPECT_EQ(cleared.graph_def().node_size(), graph_.num_operations());
  Graph imported;
  const VariableInfo again = import_scoped_meta_graph(imported, cleared).variables.at("v:0");
  EXPECT_EQ(again.initializer.name(), v.initializer.name());
}

TEST_F(MetaGraphTest, DefaultReadyOpsStayOut) {  // TensorFlow does not know them
  const Output a = variable(root_, "a").ref, b = variable(root_, "b").ref;
  const auto report = [&](const std::string& name, const std::vector<Output>& variables) {
    const Output missing = root_.add("ReportUninitializedVariables", name, variables).output();
    graph_.add_to_collection("reports_" + name, missing);
    return missing;
  };
  report("all", {a, b});
  report("choice", {a});
  root_.add("Identity", "copy", {report("used", {a, b})});
  const proto::MetaGraphDef meta = export_meta_graph(graph_);
  std::vector<std::string> names;
  for (const auto& node : meta.graph_def().node()) names.push_back(node.name());
  EXPECT_THAT(names, AllOf(Not(Contains("all")), Contains("choice"), Contains("used"), Contains("copy")));
  EXPECT_FALSE(meta.collection_def().contains("reports_all"));
  EXPECT_TRUE(meta.collection_def().contains("reports_choice"));
  EXPECT_TRUE(meta.collection_def().contains("reports_used"));
}

TEST_F(MetaGraphTest, TheTypesOfOperationsAreListed) {  // SA-95
  saver(root_.sub("save"), variable(root_, "v"));
  std::vector<std::string> types;
  const proto::MetaGraphDef meta = export_meta_graph(graph_);
  for (const auto& op : meta.meta_info_def().stripped_op_list().op()) {
    types.push_back(op.name());
    EXPECT_TRUE(op.summary().empty() && op.description().empty());
  }
  EXPECT_THAT(types, ElementsAre("Assign", "Const", "Identity", "NoOp", "RestoreV2", "SaveV2", "VariableV2"));
}

TEST_F(MetaGraphTest, AttrsWithTheirDefaultsAreStrippedOnDemand) {  // SA-95
  variable(root_, "v");
  root_.add("VariableV2", "shared", {}, {{"dtype", kFloat}, {"shape", Shape{}}, {"shared_name", std::string("x")}});
  const proto::MetaGraphDef kept = export_meta_graph(graph_);
  EXPECT_FALSE(kept.meta_info_def().stripped_default_attrs());
  EXPECT_EQ(kept.graph_def().node(0).attr().count("container"), 1u);
  const proto::MetaGraphDef stripped = export_meta_graph(graph_, {.strip_default_attrs = true});
  EXPECT_TRUE(stripped.meta_info_def().stripped_default_attrs());
  EXPECT_EQ(stripped.graph_def().node(0).attr().count("container"), 0u);
  EXPECT_EQ(stripped.graph_def().node(0).attr().count("dtype"), 1u);
  EXPECT_EQ(stripped.graph_def().node(2).attr().count("validate_shape"), 0u);
  EXPECT_EQ(stripped.graph_def().node(4).attr().at("shared_name").s(), "x");
  Graph other;
  EXPECT_EQ(import_scoped_meta_graph(other, stripped).graph.operations.size(), 5u);
}

TEST_F(MetaGraphTest, DevicesAreClearedOnDemand) {  // SA-96
  variable(root_.with_device("/job:ps/task:7"), "v");
  EXPECT_EQ(export_meta_graph(graph_).graph_def().node(0).device(), "/job:ps/task:7");
  EXPECT_EQ(export_meta_graph(graph_, {.clear_devices = true}).graph_def().node(0).device(), "");
  Graph other;
  import_scoped_meta_graph(other, export_meta_graph(graph_), {.clear_devices = true});
  EXPECT_EQ(other.operation("v").device(), "");
}

TEST_F(MetaGraphTest, CollectionsCanBeChosen) {
  variable(root_, "v");
  const proto::MetaGraphDef meta =
      export_meta_graph(graph_, {.collections = std::vector<std::string>{"trainable_variables"}});
  EXPECT_EQ(meta.collection_def().size(), 1u);
  EXPECT_THAT(error_of<InvalidArgumentError>(
                  [&] { export_meta_graph(graph_, {.collections = std::vector<std::string>{"nothing"}}); }),
              HasSubstr("no collection 'nothing'"));
  EXPECT_THAT(error_of<InvalidArgumentError>(
                  [&] { export_meta_graph(graph_, {.collections = std::vector<std::string>{"trainable_variable"}}); }),
              HasSubstr("no collection 'trainable_variable'; did you mean 'trainable_variables'?"));
}

TEST_F(MetaGraphTest, AScopeIsAMetaGraphOfItsOwn) {  // SA-97
  const Output images = constant(root_, "images", Tensor::scalar(2.f));
  const Operation ready = root_.add("NoOp", "ready");
  const Scope hidden = root_.sub("hidden1");
  const VariableInfo weights = variable(hidden, "weights");
  hidden.with_control_dependencies({ready}).add("Identity", "copy", {images});
  variable(root_, "outside");
  graph_.add_to_collection("numbers", int64_t{1});
  const ExportedMetaGraph exported = export_scoped_meta_graph(graph_, {.export_scope = "hidden1"});
  EXPECT_THAT(exported.variables, ElementsAre(Pair("weights:0", weights)));
  EXPECT_THAT(exported.meta.collection_def().at("unbound_inputs").bytes_list().value(),
              ElementsAre("$unbound_inputs_images", "^$unbound_inputs_ready"));
  EXPECT_EQ(exported.meta.graph_def().node_size(), 5);
  EXPECT_EQ(exported.meta.graph_def().node(0).name(), "weights");
  EXPECT_EQ(exported.meta.collection_def().count("numbers"), 0u);
  EXPECT_EQ(exported.meta.collection_def().at("variables").bytes_list().value_size(), 1);

  Graph other;
  const Output mine = constant(Scope(other), "mine", Tensor::scalar(3.f));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { import_scoped_meta_graph(other, exported.meta); }),
              AllOf(HasSubstr("Graph contains unbound inputs"), HasSubstr("$unbound_inputs_images")));
  const ImportedMetaGraph imported =
      import_scoped_meta_graph(other, exported.meta,
                               {.import_scope = "new_hidden1",
                                .input_map = {{"$unbound_inputs_images", mine}, {"^$unbound_inputs_ready", mine}}});
  EXPECT_EQ(imported.variables.at("weights:0").name(), "new_hidden1/weights");
  EXPECT_EQ(other.operation("new_hidden1/copy").inputs()[0], mine);
  EXPECT_TRUE(other.collection("unbound_inputs").empty());
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { export_meta_graph(graph_, {.export_scope = "none"}); }),
              HasSubstr("nothing in the scope 'none'"));
}

TEST_F(MetaGraphTest, AScopeCanBeCopied) {  // SA-97
  variable(root_.sub("hidden1"), "weights");
  const VariablesByName there = copy_scoped_meta_graph(graph_, "hidden1", graph_, "hidden2");
  EXPECT_EQ(there.at("weights:0").initializer.name(), "hidden2/weights/Assign");
  EXPECT_EQ(graph_.collection_of<VariableInfo>(collections::kGlobalVariables).size(), 2u);
  Graph other;
  EXPECT_EQ(copy_scoped_meta_graph(graph_, "hidden1", other, "hidden1").at("weights:0").name(), "hidden1/weights");
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { copy_scoped_meta_graph(graph_, "hidden1", graph_, "hidden1"); }),
              HasSubstr("need to be different"));
}

}  // namespace
}  // namespace longhaul

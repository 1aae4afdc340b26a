#include "longhaul/train/saving/meta_graph.h"

#include <cstdlib>
#include <map>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/train/saving/saver_fixture.h"
#include "longhaul/train/sessions/scaffold.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// Types of operations that TensorFlow 1.15.5 registers, with the attrs that have no default, from TF_GetAllOpList(): it
// imports a graph of these.
const std::map<std::string, std::vector<std::string>>& attrs_by_registered_type() {
  static const auto* const attrs = new std::map<std::string, std::vector<std::string>>{
      {"Assign", {"T"}},
      {"AssignAdd", {"T"}},
      {"Const", {"value", "dtype"}},
      {"Identity", {"T"}},
      {"MergeSummary", {"N"}},
      {"MergeV2Checkpoints", {}},
      {"NoOp", {}},
      {"Pack", {"N", "T"}},
      {"PlaceholderWithDefault", {"dtype", "shape"}},
      {"RestoreV2", {"dtypes"}},
      {"SaveV2", {"dtypes"}},
      {"ScalarSummary", {"T"}},
      {"ShardedFilename", {}},
      {"StringJoin", {"N"}},
      {"VariableV2", {"dtype", "shape"}},
  };
  return *attrs;
}

void expect_registered(const proto::MetaGraphDef& meta) {
  for (const auto& node : meta.graph_def().node()) {
    const auto type = attrs_by_registered_type().find(node.op());
    ASSERT_NE(type, attrs_by_registered_type().end()) << node.op() << " " << node.name();
    for (const std::string& attr : type->second) EXPECT_TRUE(node.attr().contains(attr)) << node.op() << " " << attr;
  }
}

class MetaGraphFixture : public SaverFixture {
 protected:
  // What the session of an imported graph has under a name.
  static float get_from(Session& session, const std::string& name) { return session.run(name).item<float>(); }

  SaverOptions for_import() { return {.files = &files, .clock = &clock}; }
};

TEST_F(MetaGraphFixture, TheImportedSaverRestoresAndSavesAgain) {  // SA-90, SA-94
  Saver saver(options);
  set(a, 5);
  const std::string prefix = saver.save(*session, path, step);
  Graph other;
  const auto imported = import_meta_graph(other, prefix + ".meta", {}, for_import());
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "a:0"), 5);
  EXPECT_EQ(get_from(*there, "b:0"), 2);
  const std::string again = imported->save(*there, directory.file("again"));
  EXPECT_EQ(BundleReader(files, again).read("a").item<float>(), 5);
  EXPECT_EQ(imported->to_proto().DebugString(), saver.to_proto().DebugString());
  EXPECT_EQ(proto::serialize(imported->export_meta_graph()), proto::serialize(saver.export_meta_graph()));
}

// A graph of state, as those who supervise its training leave it. crossing_test.cc has TensorFlow import such graphs.
class StateGraph : public ::testing::Test {
 protected:
  StateGraph() {
    const Variable a = ops::variable(root_, "a", Tensor::scalar(1.5f));
    ops::local_variable(root_, "seen", ops::constant(root_, 0.0f));
    ops::assign_add(root_, ops::create_global_step(root_), ops::constant(root_, int64_t{1}));
    summary::scalar(root_, "a_now", a);
  }

  Graph graph_;
  const Scope root_{graph_};
  const testing::TemporaryDirectory directory_;
};

TEST_F(StateGraph, OfASupervisorIsOneForTensorFlow) {
  const Supervisor sv({.graph = &graph_, .logdir = directory_.path()});
  expect_registered(sv.saver()->export_meta_graph());
}

TEST_F(StateGraph, OfAScaffoldIsOneForTensorFlow) {
  Scaffold scaffold;
  scaffold.finalize(graph_);
  expect_registered(scaffold.saver()->export_meta_graph());
}

TEST_F(StateGraph, GetsItsReadyOpsAgainWhereItIsImported) {
  Scaffold scaffold;
  scaffold.finalize(graph_);
  Graph other;
  const auto saver = import_meta_graph(other, scaffold.saver()->export_meta_graph());
  EXPECT_TRUE(other.collection(collections::kReadyOp).empty());
  Scaffold again({.saver = MaybeOwned<Saver>(saver.get())});
  again.finalize(other);
  EXPECT_EQ(again.ready_op().name(), scaffold.ready_op().name());
  EXPECT_EQ(again.ready_op().op().inputs().size(), 3u);
  EXPECT_EQ(proto::serialize(saver->export_meta_graph()), proto::serialize(scaffold.saver()->export_meta_graph()));
}

TEST_F(MetaGraphFixture, AMetaGraphMayBeText) {  // SA-94
  Saver saver(options);
  const std::string prefix = saver.save(*session, path);
  write_meta_graph(export_meta_graph(saver), directory.file("text"), {.as_text = true});
  Graph other;
  const auto imported = import_meta_graph(other, directory.file("text"), {}, for_import());
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "b:0"), 2);
  EXPECT_THAT(error_of([&] { import_meta_graph(other, prefix + ".index"); }), HasSubstr("Cannot parse file"));
  EXPECT_THAT(error_of([&] { import_meta_graph(other, prefix + ".index"); }), HasSubstr(prefix + ".meta"));
  EXPECT_THAT(error_of([&] { import_meta_graph(other, prefix); }), HasSubstr(prefix + ".meta"));
  EXPECT_THAT(error_of([&] { import_meta_graph(other, prefix + ".none"); }), HasSubstr("does not exist"));
}

TEST_F(MetaGraphFixture, ANameScopeGoesBeforeTheSavers) {  // SA-96
  Saver saver(options);
  set(a, 5);
  const std::string prefix = saver.save(*session, path);
  Graph other;
  const auto imported = import_meta_graph(other, prefix + ".meta", {.import_scope = "new_model"}, for_import());
  EXPECT_EQ(imported->to_proto().restore_op_name(), "new_model/save/restore_all");
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "new_model/a:0"), 5);
}

TEST_F(MetaGraphFixture, WithoutVariablesThereIsNoSaver) {  // SA-96
  Graph constants;
  ops::constant(Scope(constants), 1.0f);
  Graph other;
  EXPECT_EQ(import_meta_graph(other, export_meta_graph(constants)), nullptr);
  EXPECT_EQ(other.num_operations(), 1);
  Saver empty({.graph = &constants, .allow_empty = true});
  Graph another;
  EXPECT_EQ(import_meta_graph(another, export_meta_graph(empty)), nullptr);
}

TEST_F(MetaGraphFixture, WithoutASaverOneOfAllVariablesIsMade) {  // SA-92, SA-96
  Saver saver(options);
  const std::string prefix = saver.save(*session, path);
  const proto::MetaGraphDef meta = export_meta_graph(graph);
  EXPECT_FALSE(meta.has_saver_def());
  EXPECT_TRUE(export_meta_graph(saver).has_saver_def());
  Graph other;
  const auto imported = import_meta_graph(other, meta, {}, for_import());
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "b:0"), 2);
  EXPECT_EQ(imported->to_proto().restore_op_name(), "save_1/restore_all");
}

TEST_F(MetaGraphFixture, OfTwoSaversEachRestoresItsOwn) {  // SA-92
  Saver first({.graph = &graph, .var_list = {{SaveEntry(a)}}, .files = &files, .clock = &clock});
  Saver second({.graph = &graph, .var_list = {{SaveEntry(b)}}, .files = &files, .clock = &clock});
  graph.add_to_collection(collections::kSavers, first.to_proto().SerializeAsString());
  graph.add_to_collection(collections::kSavers, second.to_proto().SerializeAsString());
  const std::string prefix_a = first.save(*session, directory.file("a"));
  const std::string prefix_b = second.save(*session, directory.file("b"));
  Graph other;
  import_scoped_meta_graph(other, export_meta_graph(graph));
  const auto there = make_scripted_session(other);
  const auto defs = other.collection_of<std::string>(collections::kSavers);
  ASSERT_EQ(defs.size(), 2u);
  proto::SaverDef def;
  ASSERT_TRUE(def.ParseFromString(defs[1]));
  Saver(other, def, for_import()).restore(*there, prefix_b);
  EXPECT_EQ(get_from(*there, "b:0"), 2);
  EXPECT_THAT(error_of([&] { get_from(*there, "a:0"); }), HasSubstr("uninitialized"));
  ASSERT_TRUE(def.ParseFromString(defs[0]));
  Saver(other, def, for_import()).restore(*there, prefix_a);
  EXPECT_EQ(get_from(*there, "a:0"), 1);
}

TEST_F(MetaGraphFixture, ClearingExtraneousSaversLeavesOneThatWorks) {  // SA-93
  Saver first({.graph = &graph, .var_list = {{SaveEntry(a)}}, .files = &files, .clock = &clock});
  Saver second({.graph = &graph, .var_list = {{SaveEntry(b)}}, .files = &files, .clock = &clock});
  const int before = graph.num_operations();
  Saver own(options);
  const int of_own = graph.num_operations() - before;
  for (const Saver* saver : {&first, &second, &own}) {
    graph.add_to_collection(collections::kSavers, saver->to_proto().SerializeAsString());
  }
  const proto::MetaGraphDef meta = export_meta_graph(own, {.clear_extraneous_savers = true});
  EXPECT_EQ(meta.collection_def().at("savers").bytes_list().value_size(), 1);
  int of_savers = 0;
  for (const auto& node : meta.graph_def().node()) of_savers += node.name().starts_with("save");
  EXPECT_EQ(of_savers, of_own);
  Graph other;
  const auto imported = import_meta_graph(other, meta, {}, for_import());
  const std::string prefix = own.save(*session, path);
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "a:0"), 1);
}

TEST_F(MetaGraphFixture, AScopeOfACheckpointIsRestoredInAnother) {  // SA-97
  const Scope hidden = root.sub("hidden1");
  const Variable weights = ops::variable(hidden, "weights", Tensor::scalar(3.0f));
  session->run(ops::variables_initializer(root, {weights.info()}));
  const ExportedMetaGraph exported = export_scoped_meta_graph(graph, {.export_scope = "hidden1"});
  std::vector<SaveEntry> saved;
  for (const auto& [name, variable] : exported.variables) saved.emplace_back(name.substr(0, name.find(':')), variable);
  Saver saver({.graph = &graph, .var_list = saved, .files = &files, .clock = &clock});
  const std::string prefix = saver.save(*session, path);
  Graph other;
  const auto imported = import_meta_graph(other, exported.meta, {.import_scope = "new_hidden1"});
  EXPECT_EQ(imported->saved_tensors().at(0).name, "new_hidden1/weights");
  const auto variables = ops::global_variables(other);
  ASSERT_EQ(variables.size(), 1u);
  Saver by_name({.graph = &other, .var_list = {{SaveEntry("weights", variables[0])}}, .files = &files});
  const auto there = make_scripted_session(other);
  by_name.restore(*there, prefix);
  EXPECT_EQ(get_from(*there, "new_hidden1/weights:0"), 3);
}

// TensorFlow 1.x wrote it. Its initial value is computed by operations that are not known here; a constant takes their
// place.
TEST_F(MetaGraphFixture, AGenuineMetaGraphRestoresItsCheckpoint) {
  const char* folder = std::getenv("LONGHAUL_FIXTURES");
  LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
  const std::string prefix = std::string(folder) + "/checkpoints/tf-embedding_ckpt/embedding.ckpt";
  proto::MetaGraphDef meta = read_meta_graph(files, prefix + ".meta");
  EXPECT_THAT(error_of([&] {
                Graph other;
                import_meta_graph(other, meta);
              }),
              HasSubstr("Add (1 node), Mul (1 node), RandomUniform (1 node), Sub (1 node)"));
  const std::string initial = "my_embedding/Initializer/random_uniform";
  proto::GraphDef known;
  for (const auto& node : meta.graph_def().node()) {
    if (!node.name().starts_with(initial)) *known.add_node() = node;
  }
  *meta.mutable_graph_def() = known;
  const Tensor saved = BundleReader(files, prefix).read("my_embedding");
  Graph other;
  const Output value = ops::constant(Scope(other), Tensor(saved.dtype(), saved.shape()));
  const auto imported = import_meta_graph(other, meta, {.input_map = {{initial, value}}}, for_import());
  EXPECT_TRUE(ops::trainable_variables(other).at(0).trainable);
  const auto there = make_scripted_session(other);
  imported->restore(*there, prefix);
  EXPECT_TRUE(identical(there->run("my_embedding:0"), saved));
  const std::string again = imported->save(*there, path);
  EXPECT_TRUE(identical(BundleReader(files, again).read("my_embedding"), saved));
}

TEST_F(SupervisorFixture, ASaverOfAMetaGraphIsASupervisorsSaver) {  // SV-35
  std::string prefix;
  {
    const Variable v0 = ops::variable(root, "v0", Tensor::scalar(1.0f));
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    prefix = sv.saver()->save(*session, sv.save_path());
    sv.stop();
  }
  restart();
  Graph other;
  const auto saver = import_meta_graph(other, prefix + ".meta");
  ASSERT_NE(saver, nullptr);
  options.graph = &other;
  options.saver = saver.get();
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  EXPECT_EQ(session->run("v0:0").item<float>(), 1.0f);
  EXPECT_EQ(saver->last_saved(), prefix) << "it was restored, not initialised";
  const std::string again = sv.saver()->save(*session, directory.file("again"));
  EXPECT_EQ(BundleReader(FileSystem::real(), again).read("v0").item<float>(), 1.0f);
  sv.stop();
}

}  // namespace
}  // namespace longhaul

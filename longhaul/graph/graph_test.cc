#include "longhaul/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "longhaul/base/log.h"
#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/scope.h"
#include "longhaul/proto/variable.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphTest : public ::testing::Test {
 protected:
  Output constant(const Scope& scope, std::string_view name, Tensor value) {
    const DType dtype = value.dtype();
    return scope.add("Const", name, {}, {{"value", std::move(value)}, {"dtype", dtype}}).output();
  }
  Output variable(std::string_view name, Shape shape) {
    return root_.add("VariableV2", name, {}, {{"dtype", kFloat}, {"shape", shape}}).output();
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(GraphTest, NamesAreMadeUniqueBySuffixes) {  // SG-8
  EXPECT_EQ(constant(root_, "c", Tensor::scalar(1.f)).name(), "c:0");
  EXPECT_EQ(constant(root_, "c", Tensor::scalar(1.f)).name(), "c_1:0");
  EXPECT_EQ(constant(root_, "c_1", Tensor::scalar(1.f)).name(), "c_1_1:0");
  const Scope layer = root_.sub("layer");
  EXPECT_EQ(constant(layer, "c", Tensor::scalar(1.f)).name(), "layer/c:0");
  EXPECT_EQ(root_.sub("layer").prefix(), "layer_1/");
}

TEST_F(GraphTest, AVariableScopesNameIsMadeUniqueForOperationsAlone) {
  const Scope first = root_.variable_scope("train"), again = root_.variable_scope("train");
  EXPECT_EQ(first.prefix(), "train/");
  EXPECT_EQ(first.variable_prefix(), "train/");
  EXPECT_EQ(again.prefix(), "train_1/");
  EXPECT_EQ(again.variable_prefix(), "train/");
  EXPECT_EQ(again.slot_prefix(), "train/");
  EXPECT_EQ(again.sub("layer").variable_prefix(), "train/layer/");
  EXPECT_EQ(again.within("layer").prefix(), "train_1/layer/");
}

TEST_F(GraphTest, AVariableScopeWithoutANameIsTheScopeItself) {  // as tf.variable_scope("")
  EXPECT_EQ(root_.variable_scope("").add("NoOp", "op").name(), "op");
  const Scope scope = root_.sub("a").variable_scope("b"), same = scope.variable_scope("");
  EXPECT_EQ(same.prefix(), "a/b/");
  EXPECT_EQ(same.variable_prefix(), "a/b/");
  EXPECT_EQ(same.slot_prefix(), "b/");
}

TEST_F(GraphTest, SlotsAreInVariableScopesAlone) {
  const Scope scope = root_.sub("a").variable_scope("b").within("c").variable_scope("d").sub("e");
  EXPECT_EQ(scope.prefix(), "a/b/c/d/e/");
  EXPECT_EQ(scope.variable_prefix(), "a/b/c/d/e/");
  EXPECT_EQ(scope.slot_prefix(), "b/d/");
}

TEST_F(GraphTest, AScopeWithoutNamesKeepsItsDeviceAndControlInputs) {
  const Operation before = root_.add("NoOp", "before");
  const Scope scope = root_.variable_scope("a").with_device("/cpu:0").with_control_dependencies({before});
  EXPECT_EQ(scope.outermost().variable_prefix() + scope.outermost().slot_prefix(), "");
  const Operation op = scope.outermost().add("NoOp", "op");
  EXPECT_EQ(op.name(), "op");
  EXPECT_EQ(op.device(), scope.add("NoOp", "inside").device());
  EXPECT_THAT(op.control_inputs(), ElementsAre(before));
}

TEST_F(GraphTest, AMisspeltNameGetsTheNearest) {
  variable("hidden/weights", {4, 2});
  root_.add("NoOp", "train");
  const auto of_operation = [&](const char* name) { return error_of<Error>([&] { graph_.operation(name); }); };
  const auto of_tensor = [&](const char* name) { return error_of<Error>([&] { graph_.output(name); }); };
  EXPECT_EQ(of_operation("trian"),
            "The name 'trian' refers to an operation that is not in the graph; did you mean 'train'?");
  EXPECT_THAT(of_operation("weights"), HasSubstr("; did you mean 'hidden/weights'?"));
  EXPECT_EQ(of_operation("accuracy"), "The name 'accuracy' refers to an operation that is not in the graph");
  EXPECT_EQ(of_tensor("hiden/weights:0"),
            "The name 'hiden/weights:0' refers to a tensor that is not in the graph; did you mean 'hidden/weights:0'?");
  EXPECT_THAT(of_tensor("accuracy"), HasSubstr("(want NAME:INDEX, as 'loss:0')"));
}

TEST_F(GraphTest, ATensorThatAnOperationHasNotGetsThoseThatItHas) {
  variable("w", {});
  root_.add("NoOp", "train");
  const auto of_tensor = [&](const char* name) { return error_of<Error>([&] { graph_.output(name); }); };
  EXPECT_THAT(of_tensor("w"), HasSubstr("the tensors of operation 'w' (VariableV2) are 'w:0'"));
  EXPECT_THAT(of_tensor("w:1"), HasSubstr("the tensors of operation 'w' (VariableV2) are 'w:0'"));
  EXPECT_THAT(of_tensor("train:0"), HasSubstr("the tensors of operation 'train' (NoOp) are none"));
}

TEST(Graph, AnEmptyOneSaysThatItIsWhenItIsSearched) {
  const Graph empty;
  EXPECT_THAT(error_of<Error>([&] { empty.operation("train"); }), HasSubstr("not in the graph; the graph is empty"));
}

TEST_F(GraphTest, AGraphThatWasForgottenIsToldWhereTheDefaultOneIsEmpty) {
  EXPECT_EQ(&Graph::or_default(nullptr, "SupervisorOptions::graph"), &Graph::default_graph()) << "there is no other";
  root_.add("NoOp", "train");
  EXPECT_THAT(error_of<Error>([] { Graph::or_default(nullptr, "SupervisorOptions::graph"); }),
              HasSubstr("SupervisorOptions::graph was not set, so it is the default graph, but that is empty, and the "
                        "program has another graph with 1 operations"));
  EXPECT_EQ(&Graph::or_default(&graph_, "SupervisorOptions::graph"), &graph_);
  EXPECT_EQ(&Graph::or_default(&Graph::default_graph(), "SupervisorOptions::graph"), &Graph::default_graph());
}

TEST_F(GraphTest, AFinalizedGraphRefusesMore) {  // SG-7
  graph_.finalize();
  EXPECT_THAT(error_of<Error>([&] { root_.add("NoOp", "n"); }), HasSubstr("Graph is finalized and cannot be modified"));
  EXPECT_THROW(graph_.add_to_collection("k", int64_t{1}), FailedPreconditionError);
}

TEST_F(GraphTest, AGraphThatIsUnfinalizedTakesMore) {
  graph_.finalize();
  graph_.unfinalize();
  EXPECT_FALSE(graph_.finalized());
  EXPECT_EQ(root_.add("NoOp", "later").name(), "later");
}

TEST_F(GraphTest, FindsByName) {
  const Output c = constant(root_, "c", Tensor::scalar(1.f));
  EXPECT_EQ(graph_.output("c:0"), c);
  EXPECT_EQ(graph_.operation("c"), c.op());
  EXPECT_FALSE(graph_.find_output("c:1").valid());
  EXPECT_FALSE(graph_.find_output("c:x").valid());
  EXPECT_FALSE(graph_.find_output("c:-1").valid());
  EXPECT_FALSE(graph_.find_output("c").valid());
  EXPECT_FALSE(graph_.find_output("^c").valid());
  EXPECT_THROW(graph_.operation("d"), NotFoundError);
}

TEST_F(GraphTest, RefusesWhatDoesNotFit) {
  Graph other;
  const Output foreign = constant(Scope(other), "c", Tensor::scalar(1.f));
  EXPECT_THROW(root_.add("Identity", "i", {foreign}), InvalidArgumentError);
  EXPECT_THROW(root_.add("NoOp", "a name"), InvalidArgumentError);
  EXPECT_THROW(root_.add("NoSuchType", "n"), NotFoundError);
  EXPECT_THROW(root_.add("Identity", "i"), InvalidArgumentError);
  const Output c = constant(root_, "c", Tensor::of<float>({1, 2}));
  EXPECT_THAT(error_of<Error>([&] { root_.add("Assign", "a", {c, c}); }), HasSubstr("must be a variable"));
  const Output v = variable("v", {3});
  EXPECT_THAT(error_of<Error>([&] { root_.add("Assign", "a", {v, c}); }),
              HasSubstr("Assign requires shapes of both tensors to match."));
  EXPECT_EQ(root_.add("Assign", "a", {variable("u", {2}), c}).output().shape(), Shape({2}));
}

TEST_F(GraphTest, ScopesMergeDevicesAndControlInputs) {
  const Operation first = root_.add("NoOp", "first");
  const Scope scope = root_.with_device("/job:ps").with_device("/cpu:1").with_control_dependencies({first});
  const Operation op = scope.add("NoOp", "second");
  EXPECT_EQ(op.device(), "/job:ps/device:CPU:1");
  EXPECT_THAT(op.control_inputs(), ElementsAre(first));
}

TEST_F(GraphTest, ADeviceFunctionIsAskedAfterTheScopesWithin) {
  std::vector<std::string> asked;
  const Scope scope = root_.with_device("/job:ps/task:1").with_device([&](const OperationSpec& op) {
    asked.push_back(op.type + " " + op.name + " " + op.device);
    return "/task:2" + op.device;
  });
  EXPECT_EQ(scope.add("NoOp", "a").device(), "/job:ps/task:2");
  EXPECT_EQ(scope.with_device("/cpu:0").add("NoOp", "b").device(), "/job:ps/task:2/device:CPU:0");
  EXPECT_THAT(asked, ElementsAre("NoOp a ", "NoOp b /device:CPU:0"));
  EXPECT_EQ(scope.with_device(nullptr).add("NoOp", "c").device(), "");
  EXPECT_EQ(scope.with_device(nullptr).with_device("/cpu:1").add("NoOp", "d").device(), "/device:CPU:1");
  EXPECT_EQ(scope.with_device(DeviceFunction()).add("NoOp", "e").device(), "");
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_THROW(root_.with_device([](const OperationSpec&) { return "nonsense"; }).add("NoOp", "f"),
               InvalidArgumentError);
}

TEST_F(GraphTest, CopiesOfAScopeShareTheirDeviceFunction) {
  const Scope scope =
      root_.with_device([next = 0](const OperationSpec&) mutable { return "/task:" + std::to_string(next++); });
  const Scope copy = scope;
  EXPECT_EQ(scope.add("NoOp", "a").device(), "/task:0");
  EXPECT_EQ(copy.sub("b").add("NoOp", "b").device(), "/task:1");
}

TEST_F(GraphTest, UsersOfAReferenceAreWhereItIs) {
  const Scope ps = root_.with_device("/job:ps"), worker = root_.with_device("/job:worker");
  const Attrs attrs = {{"dtype", kFloat}, {"shape", Shape({})}};
  const Output v = ps.add("VariableV2", "v", {}, attrs).output();
  const Output other = worker.add("VariableV2", "other", {}, attrs).output();
  const Output value = worker.add("Const", "c", {}, {{"value", Tensor::scalar(1.f)}, {"dtype", kFloat}}).output();
  EXPECT_EQ(worker.add("Assign", "a", {v, value}).device(), "/job:ps");
  EXPECT_EQ(worker.add("IsVariableInitialized", "i", {v}).device(), "/job:ps");
  EXPECT_EQ(worker.add("Identity", "value", {value}).device(), "/job:worker");
  EXPECT_EQ(ps.add("ReportUninitializedVariables", "r", {v, other}).device(), "/job:ps");
  EXPECT_EQ(root_.add("Assign", "without", {v, value}).device(), "");
}

TEST_F(GraphTest, ColocatedOperationsAreOnOneDevice) {
  const Operation a = root_.with_device("/job:ps/task:0").add("NoOp", "a");
  const Operation b = root_.add("NoOp", "b");
  const Scope scope = root_.with_device("/job:worker").colocate_with(a);
  const Operation beside = scope.add("NoOp", "beside");
  EXPECT_EQ(beside.device(), "/job:ps/task:0");
  EXPECT_THAT(beside.attr<std::vector<std::string>>("_class"), ElementsAre("loc:@a"));
  const Operation with_both = scope.colocate_with(b).colocate_with(a).add("NoOp", "with_both");
  EXPECT_THAT(with_both.attr<std::vector<std::string>>("_class"), ElementsAre("loc:@a", "loc:@b"));
  const Operation near = scope.on_device_of(b).add("NoOp", "near");
  EXPECT_EQ(near.device(), "");
  EXPECT_EQ(near.find_attr<std::vector<std::string>>("_class"), nullptr);
  Graph elsewhere;
  EXPECT_THROW(Scope(elsewhere).colocate_with(a), InvalidArgumentError);
  EXPECT_THROW(root_.colocate_with(Operation()), InvalidArgumentError);
}

TEST(DeviceSpec, TwoRequestsAreCombinedUnlessTheyContradictEachOther) {
  const auto combined = [](const char* a, const char* b) {
    return DeviceSpec::parse(a).combined_with(DeviceSpec::parse(b)).to_string();
  };
  EXPECT_EQ(combined("/job:ps", "/task:1/cpu:0"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(combined("", "/gpu:*"), "/device:GPU:*");
  const std::vector<std::array<const char*, 3>> contradictions = {
      {"/job:ps/task:0", "/job:worker/task:1", "jobs: '/job:ps/task:0' and '/job:worker/task:1'"},
      {"/replica:0", "/replica:1", "replicas: '/replica:0' and '/replica:1'"},
      {"/job:ps/task:0", "/task:1", "tasks: '/job:ps/task:0' and '/task:1'"},
      {"/cpu:0", "/gpu:0", "types: '/device:CPU:0' and '/device:GPU:0'"},
      {"/cpu:0", "/cpu:1", "ids: '/device:CPU:0' and '/device:CPU:1'"}};
  for (const auto& [a, b, said] : contradictions) {
    EXPECT_EQ(error_of<InvalidArgumentError>([&, a = a, b = b] { combined(a, b); }),
              std::string("Cannot merge devices with incompatible ") + said);
  }
}

TEST(DeviceSpec, APartialNameMatchesTheFullOnesThatHaveItsParts) {
  const DeviceSpec full = DeviceSpec::parse("/job:ps/replica:0/task:1/device:CPU:0");
  for (const char* fits : {"", "/job:ps", "/task:1", "/cpu:*", "/job:ps/replica:0/task:1/cpu:0"}) {
    EXPECT_TRUE(DeviceSpec::parse(fits).matches(full)) << fits;
  }
  for (const char* other : {"/job:worker", "/job:ps/task:0", "/gpu:0", "/cpu:1", "/replica:1"}) {
    EXPECT_FALSE(DeviceSpec::parse(other).matches(full)) << other;
  }
  EXPECT_EQ(full.without_type().to_string(), "/job:ps/replica:0/task:1");
}

TEST(DeviceSpec, ReadsFullAndShortNames) {
  const DeviceSpec spec = DeviceSpec::parse("/job:worker/replica:0/task:1/device:GPU:2");
  EXPECT_EQ(spec.job, "worker");
  EXPECT_EQ(spec.task, 1);
  EXPECT_EQ(spec.index, 2);
  EXPECT_EQ(spec.to_string(), "/job:worker/replica:0/task:1/device:GPU:2");
  EXPECT_EQ(DeviceSpec::parse("/cpu:0").to_string(), "/device:CPU:0");
  EXPECT_EQ(DeviceSpec::parse("").to_string(), "");
  for (const char* bad : {"cpu:0", "/task:x", "/job:", "/tpu", "/device:", "/cpu:-1"}) {
    EXPECT_THROW(DeviceSpec::parse(bad), InvalidArgumentError) << bad;
  }
}

TEST_F(GraphTest, IsExportedWithShapes) {  // SG-8
  const Output v = variable("v", {2});
  const Operation init = root_.add("Assign", "init", {v, constant(root_, "c", Tensor::of<float>({1, 2}))});
  root_.with_control_dependencies({init}).add("NoOp", "done");
  const proto::GraphDef def = to_graph_def(graph_, true);
  ASSERT_EQ(def.node_size(), 4);
  EXPECT_EQ(def.node(0).attr().at("dtype").type(), proto::DT_FLOAT);
  EXPECT_EQ(def.node(0).attr().at("_output_shapes").list().shape(0).dim(0).size(), 2);
  EXPECT_THAT(def.node(2).input(), ElementsAre("v", "c"));
  EXPECT_THAT(def.node(3).input(), ElementsAre("^init"));
  EXPECT_TRUE(identical(from_proto(def.node(1).attr().at("value").tensor()), Tensor::of<float>({1, 2})));
  EXPECT_EQ(to_graph_def(graph_).node(0).attr().count("_output_shapes"), 0u);
}

TEST_F(GraphTest, AMetaGraphHasCollectionsAndTheOpTypes) {  // SA-91, SA-95, PR-3
  const Output v = variable("v", {2});
  const Operation init = root_.add("Assign", "v/Assign", {v, constant(root_, "c", Tensor::of<float>({1, 2}))});
  graph_.add_to_collection("variables", VariableInfo{v, v, init, init.output(), true});
  graph_.add_to_collection("numbers", int64_t{7});
  graph_.add_to_collection("mixed", int64_t{7});
  graph_.add_to_collection("mixed", std::string("text"));
  graph_.add_to_collection("init_op", init);
  proto::SaverDef saver;
  saver.set_max_to_keep(3);
  const proto::MetaGraphDef meta = to_meta_graph_def(graph_, &saver);
  EXPECT_EQ(meta.saver_def().max_to_keep(), 3);
  EXPECT_EQ(meta.collection_def().at("numbers").int64_list().value(0), 7);
  EXPECT_EQ(meta.collection_def().at("init_op").node_list().value(0), "v/Assign");
  EXPECT_EQ(meta.collection_def().count("mixed"), 0u);
  proto::VariableDef variable;
  ASSERT_TRUE(variable.ParseFromString(meta.collection_def().at("variables").bytes_list().value(0)));
  EXPECT_EQ(variable.initializer_name(), "v/Assign");
  EXPECT_EQ(meta.meta_info_def().stripped_op_list().op(0).name(), "Assign");
}

TEST_F(GraphTest, ACollectionOfSeveralKindsIsLeftOutWithAWarning) {  // SA-91
  graph_.add_to_collection("mixed", int64_t{7});
  graph_.add_to_collection("mixed", std::string("text"));
  std::string warnings;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& message) {
    if (level == LogLevel::kWarning) warnings += message;
  });
  const proto::MetaGraphDef meta = to_meta_graph_def(graph_);
  set_log_sink(before);
  EXPECT_EQ(meta.collection_def().count("mixed"), 0u);
  EXPECT_THAT(warnings, HasSubstr("collection mixed has items of different kinds and is omitted"));
}

TEST(TensorProto, RoundTripsAllDTypes) {
  const std::vector<Tensor> tensors = {Tensor::of<float>({1, 2}),
                                       Tensor::of<int64_t>({-3}),
                                       Tensor::of<bool>({true, false}),
                                       Tensor::of<std::string>({"a", ""}),
                                       Tensor::of<Half>({Half(1.5f)}),
                                       Tensor::of<std::complex<double>>({{1, 2}}),
                                       Tensor::of<uint64_t>({~uint64_t{0}}),
                                       Tensor(kFloat, {0, 3})};
  for (const Tensor& tensor : tensors)
    EXPECT_TRUE(identical(from_proto(to_proto(tensor)), tensor)) << tensor.to_string();
}

TEST(TensorProto, OneValueStandsForAll) {
  proto::TensorProto proto;
  proto.set_dtype(proto::DT_INT32);
  proto.mutable_tensor_shape()->add_dim()->set_size(3);
  proto.add_int_val(7);
  EXPECT_TRUE(identical(from_proto(proto), Tensor::of<int32_t>({7, 7, 7})));
}

TEST(TensorProto, ADamagedOneIsRefusedBeforeMemoryIsTaken) {
  proto::TensorProto proto;
  proto.set_dtype(proto::DT_FLOAT);
  proto.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 60);
  EXPECT_THROW(from_proto(proto), InvalidArgumentError);
  proto.set_tensor_content("1234");
  EXPECT_THROW(from_proto(proto), InvalidArgumentError);
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(-5);
  EXPECT_THROW(from_proto(proto), InvalidArgumentError);
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(1);
  for (int i = 0; i < 254; ++i) proto.mutable_tensor_shape()->add_dim()->set_size(1);
  EXPECT_THAT(error_of<Error>([&] { from_proto(proto); }), HasSubstr("255 dimensions"));
}

// As TensorFlow encodes a value that a client feeds: the lengths, then the texts.
TEST(TensorProto, StringsMayComeAsContents) {
  proto::TensorProto proto;
  proto.set_dtype(proto::DT_STRING);
  proto.mutable_tensor_shape()->add_dim()->set_size(3);
  proto.set_tensor_content(std::string("\2\0\1abc", 6));
  EXPECT_TRUE(identical(from_proto(proto), Tensor::of<std::string>({"ab", "", "c"})));
  for (const std::string& damaged : {std::string("\2\0\1ab", 5), std::string("\2\0\1abcd", 7), std::string("\2\0", 2),
                                     std::string("\x80\x80\x80", 3)}) {
    proto.set_tensor_content(damaged);
    EXPECT_THROW(from_proto(proto), InvalidArgumentError) << damaged.size();
  }
}

// A string takes memory even where it is empty, and the last one stands for all that are missing.
TEST(TensorProto, StringsAreCountedBeforeTheyAreMade) {
  proto::TensorProto proto;
  proto.set_dtype(proto::DT_STRING);
  proto.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 27);
  EXPECT_THAT(error_of<Error>([&] { from_proto(proto); }), HasSubstr("its values would take more than"));
  proto.set_tensor_content("x");
  EXPECT_THAT(error_of<Error>([&] { from_proto(proto); }), HasSubstr("its values would take more than"));
  proto.clear_tensor_content();
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(5000);
  proto.add_string_val(std::string(1 << 20, 'x'));
  EXPECT_THAT(error_of<Error>([&] { from_proto(proto); }), HasSubstr("its values would take more than"));
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(3);
  EXPECT_EQ(from_proto(proto).flat<std::string>()[2].size(), size_t{1} << 20);
}

}  // namespace
}  // namespace longhaul

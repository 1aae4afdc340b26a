#include "longhaul/graph/graph_def/import_graph_def.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/graph/graph_def/lent_functions.h"
#include "longhaul/graph/scope.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const proto::GraphDef& graph_def) {
  return graph_def.DebugString();
}

class ImportTest : public ::testing::Test {
 protected:
  static Output constant(const Scope& scope, std::string_view name, Tensor value) {
    const DType dtype = value.dtype();
    return scope.add("Const", name, {}, {{"value", std::move(value)}, {"dtype", dtype}}).output();
  }

  // A graph with a variable, a restore with two results, control inputs, devices and scopes.
  static void build(const Scope& root) {
    const Output w = root.add("VariableV2", "w", {}, {{"dtype", kFloat}, {"shape", Shape{2}}}).output();
    const Output initial = constant(root.within("w"), "initial_value", Tensor::of<float>({1, 2}));
    const Operation assign = root.add("Assign", "w/Assign", {w, initial}, {{"validate_shape", true}});
    const Scope save = root.sub("save");
    const Output prefix = constant(save, "prefix", Tensor::scalar("model"));
    const Output names = constant(save, "names", Tensor::of<std::string>({"a", "w"}));
    const std::vector<DType> dtypes{kInt64, kFloat};
    const Operation restore =
        save.with_device("/cpu:0").add("RestoreV2", "RestoreV2", {prefix, names, names}, {{"dtypes", dtypes}});
    const Operation put = save.with_control_dependencies({assign}).add("Assign", "Assign", {w, restore.output(1)});
    root.with_control_dependencies({put, assign}).add("NoOp", "done");
  }
  static proto::GraphDef exported() {
    Graph graph;
    build(Scope(graph));
    return to_graph_def(graph);
  }
  static proto::GraphDef parsed(const std::string& text) { return parse_graph_def(text); }
  template <typename E>
  std::string refusal(const std::string& text, const ImportOptions& options = {}) {
    return error_of<E>([&] { import_graph_def(graph_, parsed(text), options); });
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(ImportTest, AnExportOfTheImportIsTheSame) {  // SA-90
  const proto::GraphDef before = exported();
  const ImportedGraph imported = import_graph_def(graph_, before);
  EXPECT_EQ(text_of(to_graph_def(graph_)), text_of(before));
  EXPECT_EQ(imported.prefix, "");
  ASSERT_EQ(imported.operations.size(), 8u);
  EXPECT_EQ(imported.operations[0].name(), "w");
  EXPECT_EQ(graph_.operation("save/Assign").inputs()[1].name(), "save/RestoreV2:1");
  EXPECT_EQ(graph_.output("w:0").shape(), Shape({2}));
}

TEST_F(ImportTest, TheNodesMayBeInAnyOrder) {
  proto::GraphDef reversed = exported();
  std::reverse(reversed.mutable_node()->begin(), reversed.mutable_node()->end());
  const ImportedGraph imported = import_graph_def(graph_, reversed);
  EXPECT_EQ(imported.operations.front().name(), "done");
  EXPECT_THAT(graph_.operation("done").control_inputs(),
              ElementsAre(graph_.operation("save/Assign"), graph_.operation("w/Assign")));
}

TEST_F(ImportTest, ShapesThatTheFileTellsAreInferredAnew) {  // PR-2
  Graph original;
  build(Scope(original));
  import_graph_def(graph_, to_graph_def(original, /*add_shapes=*/true));
  EXPECT_EQ(graph_.operation("w").attrs().count("_output_shapes"), 0u);
  EXPECT_EQ(text_of(to_graph_def(graph_, true)), text_of(to_graph_def(original, true)));
}

TEST_F(ImportTest, AttrsOfAllKindsComeBack) {
  const Attrs attrs = {{"i", int64_t{-3}},
                       {"f", 0.1},
                       {"whole", 2.0},
                       {"b", true},
                       {"s", std::string("a\0b\xff", 4)},
                       {"type", kHalf},
                       {"shape", Shape{2, -1}},
                       {"unknown", Shape::unknown_rank()},
                       {"ints", std::vector<int64_t>{1, 2}},
                       {"floats", std::vector<double>{0.25, 1e-3}},
                       {"strings", std::vector<std::string>{"x", ""}},
                       {"some_types", std::vector<DType>{kFloat}},
                       {"some_shapes", std::vector<Shape>{{}, {3}}},
                       {"none", std::vector<int64_t>{}},
                       {"component_types", std::vector<DType>{}},
                       {"shapes", std::vector<Shape>{}},
                       {"dense_keys", std::vector<std::string>{}}};
  Graph original;
  Scope(original).add("NoOp", "n", {}, attrs);
  import_graph_def(graph_, to_graph_def(original));
  EXPECT_EQ(text_of(to_graph_def(graph_)), text_of(to_graph_def(original)));
  for (const auto& [name, attr] : attrs) {
    const Attr& back = graph_.operation("n").attrs().at(name);
    EXPECT_EQ(back.index(), attr.index()) << name;
  }
  EXPECT_EQ(graph_.operation("n").attr<double>("f"), 0.1) << "not the double nearest to the float 0.1";
  EXPECT_EQ(graph_.operation("n").attr<std::vector<double>>("floats")[1], 1e-3);
}

TEST_F(ImportTest, AScopeMayBeLeftToALaterNodeOfItsName) {
  import_graph_def(graph_, parsed("node { name: 'a/b' op: 'NoOp' }"), {.takes_scopes = false});
  import_graph_def(graph_, parsed("node { name: 'a' op: 'NoOp' }"), {.takes_scopes = false});
  EXPECT_EQ(graph_.operation("a").name(), "a");
}

TEST_F(ImportTest, AScopeGoesBeforeAllNames) {  // SA-96
  const ImportedGraph first = import_graph_def(graph_, exported(), {.scope = "tower"});
  EXPECT_EQ(first.prefix, "tower/");
  EXPECT_EQ(graph_.operation("tower/save/Assign").inputs()[0].name(), "tower/w:0");
  const ImportedGraph second = import_graph_def(graph_, exported(), {.scope = "tower"});
  EXPECT_EQ(second.prefix, "tower_1/");
  EXPECT_EQ(second.operations[0].name(), "tower_1/w");
}

TEST_F(ImportTest, LaterNamesAreThoseOfTheOriginal) {  // SG-8
  import_graph_def(graph_, exported());
  EXPECT_EQ(root_.sub("save").prefix(), "save_1/");
  EXPECT_EQ(root_.add("NoOp", "done").name(), "done_1");
}

TEST_F(ImportTest, ColocationsAreKept) {
  const std::string text = R"(node { name: "a" op: "NoOp" }
      node { name: "b" op: "NoOp" attr { key: "_class" value { list { s: "loc:@a" } } } })";
  import_graph_def(graph_, parsed(text), {.scope = "t"});
  EXPECT_THAT(graph_.operation("t/b").attr<std::vector<std::string>>("_class"), ElementsAre("loc:@t/a"));
}

TEST_F(ImportTest, InputsCanBeReplaced) {
  const Output mine = constant(root_, "mine", Tensor::of<float>({5, 6}));
  const std::string text = R"(node { name: "a" op: "Identity" input: "x" }
      node { name: "b" op: "Identity" input: "a:0" input: "^y" })";
  const ImportedGraph imported =
      import_graph_def(graph_, parsed(text),
                       {.scope = "t", .input_map = {{"x:0", mine}, {"^y", mine}}, .return_elements = {"b", "a:0"}});
  EXPECT_EQ(graph_.operation("t/a").inputs()[0], mine);
  EXPECT_THAT(graph_.operation("t/b").control_inputs(), ElementsAre(mine.op()));
  EXPECT_THAT(imported.returned,
              ElementsAre(GraphElement(graph_.operation("t/b")), GraphElement(graph_.output("t/a:0"))));
  EXPECT_THAT(
      refusal<InvalidArgumentError>(text, {.scope = "u", .input_map = {{"x", mine}, {"^y", mine}, {"z", mine}}}),
      HasSubstr("Attempted to map inputs that were not found in graph_def: [z:0]"));
  EXPECT_THAT(refusal<InvalidArgumentError>(text, {.input_map = {{"x", mine}, {"^y", mine}}, .return_elements = {"q"}}),
              HasSubstr("Requested return_element 'q' not found"));
}

TEST_F(ImportTest, DevicesAreClearedOnDemand) {  // SA-96
  import_graph_def(graph_, exported(), {.scope = "kept"});
  import_graph_def(graph_, exported(), {.scope = "cleared", .clear_devices = true});
  EXPECT_EQ(graph_.operation("kept/save/RestoreV2").device(), "/device:CPU:0");
  EXPECT_EQ(graph_.operation("cleared/save/RestoreV2").device(), "");
}

TEST_F(ImportTest, AllThatIsMissingIsNamedAtOnce) {
  const std::string text = R"(
      node { name: "m" op: "MatMul" } node { name: "n" op: "MatMul" } node { name: "u" op: "NoSuchType" }
      node { name: "f" op: "HostFunction" attr { key: "function" value { placeholder: "p" } } }
      node { name: "known" op: "NoOp" } node { name: "i" op: "NextIteration" input: "m" }
      library { function { signature { name: "MyAdd" } } })";
  EXPECT_THAT(refusal<UnimplementedError>(text),
              AllOf(HasSubstr("MatMul (2 nodes)"), HasSubstr("NoSuchType (1 node)"), HasSubstr("loops"),
                    HasSubstr("functions, but these are not supported: MyAdd"),
                    HasSubstr("nor run on a server (feed what they return through placeholders): f")));
  EXPECT_EQ(graph_.num_operations(), 0);
}

TEST_F(ImportTest, AFunctionOfThisProgramIsFoundInAPartOfARunAlone) {
  auto function = std::make_shared<HostFunction>([](const std::vector<Tensor>&) { return std::vector<Tensor>(); });
  const std::string ticket = lend_function(function);
  EXPECT_EQ(lend_function(function), ticket) << "so the same run has the same part";
  const auto text = [](const std::string& ticket) {
    return fmt::format(R"(node {{ name: "f" op: "HostFunction" attr {{ key: "function" value {{ placeholder: "{}" }} }}
                            attr {{ key: "dtypes" value {{ list {{ }} }} }} }})",
                       ticket);
  };
  const auto import = [&](const std::string& ticket, bool is_part) {
    Graph graph;
    import_graph_def(graph, parsed(text(ticket)), {.is_part = is_part});
    return graph.operation("f").attr<std::shared_ptr<HostFunction>>("function");
  };
  EXPECT_EQ(import(ticket, /*is_part=*/true), function);
  EXPECT_THROW(import(ticket, /*is_part=*/false), UnimplementedError);
  EXPECT_THROW(import("1" + ticket, /*is_part=*/true), UnimplementedError) << "of another process";
  EXPECT_THROW(import(ticket + "1", /*is_part=*/true), UnimplementedError);
  function.reset();
  EXPECT_THROW(import(ticket, /*is_part=*/true), UnimplementedError) << "the program has it no more";
}

TEST_F(ImportTest, ARefusalIsShortHoweverMuchIsWrong) {
  proto::GraphDef types, names;
  for (int i = 0; i < 3000; ++i) {
    types.add_node()->set_op("NoSuchType" + std::to_string(i));
    types.mutable_node(i)->set_name("n" + std::to_string(i));
  }
  const std::string huge = "\x1b[31m\n" + std::string(1'000'000, 'x');
  names.add_node()->set_name(huge);
  names.mutable_node(0)->set_op(huge);
  (*names.mutable_node(0)->mutable_attr())["function"].set_placeholder("p");
  names.mutable_library()->add_function()->mutable_signature()->set_name(huge);
  proto::GraphDef input;
  input.add_node()->set_name(huge);
  input.mutable_node(0)->set_op("NoOp");
  input.mutable_node(0)->add_input(huge);
  proto::GraphDef twice;
  for (int i = 0; i < 2; ++i) {
    twice.add_node()->set_name(huge);
    twice.mutable_node(i)->set_op("NoOp");
  }
  const std::string of_types = error_of<UnimplementedError>([&] { import_graph_def(graph_, types); });
  EXPECT_THAT(of_types, HasSubstr("and 2980 more"));
  EXPECT_THAT(error_of<UnimplementedError>([&] { import_graph_def(graph_, names); }), HasSubstr("(1 node)"));
  for (const proto::GraphDef* graph_def : {&types, &names, &input, &twice}) {
    const std::string text = error_of<Error>([&] { import_graph_def(graph_, *graph_def); });
    EXPECT_LT(text.size(), 3000u);
    EXPECT_EQ(text.find_first_of("\x1b\n"), text.npos) << text;
  }
  EXPECT_EQ(graph_.num_operations(), 0);
}

TEST_F(ImportTest, LoopsAreRefused) {  // unlike SA-98
  EXPECT_THAT(refusal<UnimplementedError>(R"(node { name: "a" op: "Identity" input: "b" }
                  node { name: "b" op: "Identity" input: "c" } node { name: "c" op: "Identity" input: "a" })"),
              AllOf(HasSubstr("loop"), HasSubstr("a -> b -> c -> a")));
  EXPECT_THAT(refusal<UnimplementedError>(R"(node { name: "a" op: "NoOp" input: "^a" })"), HasSubstr("a -> a"));
  EXPECT_EQ(graph_.num_operations(), 0);
}

TEST_F(ImportTest, ALongChainNeedsNoStack) {
  proto::GraphDef chain;
  constexpr int kNodes = 100000;
  for (int i = kNodes - 1; i >= 0; --i) {
    proto::NodeDef* node = chain.add_node();
    node->set_name("n" + std::to_string(i));
    node->set_op("NoOp");
    if (i > 0) node->add_input("^n" + std::to_string(i - 1));
  }
  EXPECT_EQ(import_graph_def(graph_, chain).operations.size(), size_t{kNodes});
}

TEST_F(ImportTest, MalformedNodesAreRefusedBeforeAnythingIsAdded) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" })", "node 1 has the name 'a', like node 0"},
      {R"(node { name: "a" op: "NoOp" input: "^b" })", "the input '^b' is not in the graph"},
      {R"(node { name: "a" op: "Identity" input: "b:x" })", "'b:x' is not the name of an input"},
      {R"(node { name: "a" op: "Identity" input: "b:-1" })", "'b:-1' is not the name of an input"},
      {R"(node { name: "a" op: "Identity" input: "b:99999999999" })", "'b:99999999999' is not the name"},
      {R"(node { name: "a" op: "Identity" input: "" })", "'' is not the name of an input"},
      {R"(node { name: "b" op: "NoOp" } node { name: "a" op: "NoOp" input: "^b" input: "b" })",
       "after a control input"},
      {R"(node { name: "a" op: "NoOp" } versions { min_consumer: 1000 })", "a reader of version 1000 or later"},
      {R"(node { name: "a" op: "NoOp" } versions { bad_consumers: 134 })", "does not allow readers of version 134"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(refusal<InvalidArgumentError>(text), HasSubstr(why));
  }
  proto::GraphDef deep;
  deep.add_node()->set_op("NoOp");
  for (int i = 0; i < 200; ++i) deep.mutable_node(0)->mutable_name()->append("a/");
  deep.mutable_node(0)->mutable_name()->append("a");
  EXPECT_THROW(import_graph_def(graph_, deep), InvalidArgumentError);
  EXPECT_EQ(graph_.num_operations(), 0);
}

TEST_F(ImportTest, ATakenNameIsRefused) {
  root_.add("NoOp", "a");
  EXPECT_THAT(refusal<InvalidArgumentError>(R"(node { name: "a" op: "NoOp" })"),
              HasSubstr("the name 'a' already exists"));
  graph_.finalize();
  EXPECT_THAT(refusal<FailedPreconditionError>(R"(node { name: "b" op: "NoOp" })"), HasSubstr("finalized"));
}

TEST_F(ImportTest, ErrorsNameTheNode) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(node { name: "a" op: "NoOp" } node { name: "b" op: "Identity" input: "a" })", "a (NoOp) has 0 outputs"},
      {R"(node { name: "b" op: "Identity" })", "b (Identity): takes 1 inputs, but 0 were given"},
      {R"(node { name: "b c" op: "NoOp" })", "'b c' is not a valid operation name"},
      {R"(node { name: "b" op: "NoOp" device: "cpu" })", "device \"cpu\""},
      {R"(node { name: "b" op: "NoOp" attr { key: "k" value { } } })", "node b (NoOp): attr k: it has no value"},
      {R"(node { name: "b" op: "NoOp" attr { key: "k" value { list { i: 1 f: 1 } } } })",
       "attr k: the list has values of different"},
      {R"(node { name: "b" op: "NoOp" attr { key: "k" value { shape { dim { size: -2 } } } } })", "a dimension of -2"},
      {R"(node { name: "b" op: "NoOp" attr { key: "k" value { tensor { dtype: DT_RESOURCE } } } })",
       "attr k: a tensor"},
  };
  for (const auto& [text, why] : cases) {
    Graph graph;
    EXPECT_THAT(error_of<InvalidArgumentError>([&] { import_graph_def(graph, parsed(text)); }), HasSubstr(why));
  }
  EXPECT_THAT(
      refusal<UnimplementedError>(R"(node { name: "b" op: "NoOp" attr { key: "k" value { type: DT_FLOAT_REF } } })"),
      HasSubstr("attr k: the dtype DT_FLOAT_REF"));
}

TEST_F(ImportTest, ConstantsThatAreTooLargeAreRefusedBeforeMemoryIsTaken) {
  const std::string text = R"(node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000 } } float_val: 1 } } } })";
  EXPECT_THAT(refusal<ResourceExhaustedError>(text, {.most_constant_bytes = 3999}),
              HasSubstr("node c exceeds the limit"));
  import_graph_def(graph_, parsed(text), {.most_constant_bytes = 4000});
  EXPECT_EQ(graph_.output("c:0").shape(), Shape({1000}));
}

// The last text of a constant stands for all that follow: copies, which count.
TEST_F(ImportTest, CopiesOfATextCountAsWell) {
  const std::string text = R"(node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
      attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1000 } }
      string_val: ")" + std::string(10000, 'x') +
                           R"(" } } } })";
  EXPECT_THAT(refusal<ResourceExhaustedError>(text, {.most_constant_bytes = 1000 * 1000}), HasSubstr("node c exceeds"));
  import_graph_def(graph_, parsed(text), {.most_constant_bytes = 11 * 1000 * 1000});
}

TEST_F(ImportTest, NodesHaveALimit) {
  const std::string text = R"(node { name: "a" op: "NoOp" } node { name: "b" op: "NoOp" })";
  EXPECT_THAT(refusal<ResourceExhaustedError>(text, {.most_nodes = 1}), HasSubstr("2 nodes, more than 1"));
  EXPECT_EQ(graph_.num_operations(), 0);
  import_graph_def(graph_, parsed(text), {.most_nodes = 2});
}

// This test program has no runtime.
TEST_F(ImportTest, MissingTypesOfTheRuntimeNameTheHeaderThatBringsThem) {
  EXPECT_THAT(refusal<UnimplementedError>(R"(node { name: "a" op: "aten::add" })"),
              HasSubstr("aten::add (1 node); libtorch's operators come with #include <longhaul/longhaul.h>"));
}

}  // namespace
}  // namespace longhaul

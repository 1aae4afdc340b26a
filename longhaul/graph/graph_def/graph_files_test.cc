#include "longhaul/graph/graph_def/graph_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <regex>

#include "longhaul/base/log.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/graph/scope.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GraphFiles : public ::testing::Test {
 protected:
  GraphFiles() {
    const Tensor value = Tensor::of<std::string>({std::string("\x01\xff\0'\"", 5), "ü"});
    Scope(graph_).sub("a").add("Const", "c", {}, {{"value", value}, {"dtype", kString}});
  }
  std::string file(const std::string& name, const std::string& contents) {
    write_file_atomically(FileSystem::real(), directory_.file(name), contents);
    return directory_.file(name);
  }

  testing::TemporaryDirectory directory_;
  Graph graph_;
  FileSystem& files_ = FileSystem::real();
};

TEST_F(GraphFiles, ReadersTakeBinaryAndText) {  // SA-94, PR-1
  for (const bool as_text : {true, false}) {
    const std::string path = write_graph(graph_, directory_.path(), "graph", {.as_text = as_text});
    EXPECT_EQ(read_graph_def(files_, path).DebugString(), to_graph_def(graph_).DebugString());
    EXPECT_EQ(read_graph_def(files_, "file://" + path).node_size(), 1);
    const proto::MetaGraphDef meta = to_meta_graph_def(graph_);
    write_meta_graph(meta, directory_.file("meta"), {.as_text = as_text});
    EXPECT_EQ(read_meta_graph(files_, directory_.file("meta")).DebugString(), meta.DebugString());
  }
}

TEST_F(GraphFiles, TextIsEscapedAsInC) {  // PR-1
  const std::string text = read_file(files_, write_graph(graph_, directory_.path(), "graph.pbtxt"));
  EXPECT_THAT(text, AllOf(HasSubstr(R"(string_val: "\001\377\000\'\"")"), HasSubstr(R"(string_val: "\303\274")"),
                          HasSubstr("dtype: DT_STRING"), HasSubstr("attr {\n    key: \"dtype\"\n    value {")));
}

TEST_F(GraphFiles, AWrittenGraphMakesItsDirectories) {  // SA-111
  const std::string directory = directory_.file("a/b/c");
  EXPECT_EQ(write_graph(graph_, directory, "graph.pbtxt"), directory + "/graph.pbtxt");
  EXPECT_EQ(write_graph(to_graph_def(graph_), directory, "again.pbtxt"), directory + "/again.pbtxt");
  EXPECT_EQ(read_file(files_, directory + "/graph.pbtxt"), read_file(files_, directory + "/again.pbtxt"));
}

TEST_F(GraphFiles, AGraphIsReplacedWhole) {  // SA-111
  testing::FaultyFileSystem faulty;
  const std::string path = write_graph(graph_, directory_.path(), "graph.pbtxt");
  const std::string before = read_file(files_, path);
  Scope(graph_).add("NoOp", "more");
  for (int operation = 0; operation < 4; ++operation) {  // directories, create, append, sync
    faulty.fail_operation(operation);
    EXPECT_THROW(write_graph(graph_, directory_.path(), "graph.pbtxt", {.files = &faulty}), Error);
    EXPECT_EQ(read_file(files_, path), before);
    EXPECT_EQ(files_.list(directory_.path()).size(), 1u);
  }
}

TEST_F(GraphFiles, WhatIsNoGraphIsRefused) {  // SA-94
  const std::string path = file("bad", "node {\n  name: x\n}\n");
  EXPECT_THAT(error_of<DataLossError>([&] { read_graph_def(files_, path); }),
              AllOf(HasSubstr("Cannot parse file " + path), HasSubstr("line 2:")));
  EXPECT_THAT(error_of<DataLossError>([&] { read_meta_graph(files_, path); }), HasSubstr("Cannot parse file"));
  for (const std::string contents : {"", "\x0a\xff", "# only a comment", "hello", "\x7a\x01x"}) {
    EXPECT_THAT(error_of<DataLossError>([&] { read_graph_def(files_, file("bad", contents)); }),
                HasSubstr("Cannot parse file"))
        << contents;
  }
  EXPECT_THAT(error_of<NotFoundError>([&] { read_meta_graph(files_, directory_.file("none")); }),
              HasSubstr("does not exist"));
}

TEST_F(GraphFiles, OneOfTheOtherKindIsRefusedWithWhatTakesIt) {
  proto::MetaGraphDef meta;
  *meta.mutable_graph_def() = to_graph_def(graph_);
  std::string logged;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { logged += message; });
  for (const bool as_text : {false, true}) {
    const std::string graph = write_graph(graph_, directory_.path(), "graph", {.as_text = as_text});
    EXPECT_THAT(error_of<DataLossError>([&] { read_meta_graph(files_, graph); }),
                AllOf(HasSubstr("Cannot parse file " + graph), HasSubstr("it is a GraphDef, like graph.pbtxt"),
                      HasSubstr("import_graph_def()"), HasSubstr("its .meta file")));
    const std::string path = directory_.file("model.meta");
    write_meta_graph(meta, path, {.as_text = as_text});
    EXPECT_THAT(error_of<DataLossError>([&] { read_graph_def(files_, path); }),
                AllOf(HasSubstr("it is a MetaGraphDef"), HasSubstr("import_meta_graph()")));
  }
  const std::string commented = file("commented", "# of yesterday\n\nnode { name: \"x\" op: \"NoOp\" }\n");
  EXPECT_THAT(error_of<DataLossError>([&] { read_meta_graph(files_, commented); }), HasSubstr("is a GraphDef"));
  set_log_sink(before);
  EXPECT_EQ(logged, "");
}

TEST_F(GraphFiles, EveryPrefixIsAGraphOrRefused) {
  const std::string bytes = proto::serialize(to_meta_graph_def(graph_));
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      parse_meta_graph(bytes.substr(0, size));
    } catch (const DataLossError&) {
    }
  }
}

TEST_F(GraphFiles, NothingIsPrinted) {
  ::testing::internal::CaptureStderr();
  graph_.add_to_collection("any", AnyMessage{"type.googleapis.com/nobody.Knows", "\xff"});
  write_meta_graph(to_meta_graph_def(graph_), directory_.file("meta"), {.as_text = true});
  EXPECT_EQ(read_meta_graph(files_, directory_.file("meta")).collection_def().at("any").any_list().value(0).value(),
            "\xff");
  EXPECT_THROW(parse_graph_def("node { name: 5 }"), DataLossError);
  EXPECT_THROW(parse_graph_def(std::string("\x0a\x04\x0a\x02\xff\xfe", 6)), DataLossError);  // a name that is not UTF-8
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A list of functions with attrs that are lists of functions, and so on.
TEST_F(GraphFiles, NestingHasALimit) {
  const auto nested = [](int depth) {
    proto::GraphDef graph_def;
    proto::NodeDef* node = graph_def.add_node();
    proto::AttrValue* value = &(*node->mutable_attr())["k"];
    for (int i = 0; i < depth; ++i) value = &(*value->mutable_func()->mutable_attr())["k"];
    value->set_i(1);
    return graph_def;
  };
  EXPECT_EQ(parse_graph_def(proto::serialize(nested(20))).node_size(), 1);
  EXPECT_EQ(parse_graph_def(nested(20).DebugString()).node_size(), 1);
  EXPECT_THROW(parse_graph_def(proto::serialize(nested(60))), DataLossError);
  EXPECT_THROW(parse_graph_def(nested(60).DebugString()), DataLossError);
}

// 30 million nodes of two bytes, 6.5 GB of memory: refused before any of it is taken.
TEST_F(GraphFiles, AGraphOfFarMoreMemoryThanItsFileIsRefused) {
  const std::string empty("\x0a\x00", 2);
  std::string binary, text;
  for (int i = 0; i < 1000 * 1000; ++i) {
    binary += empty;
    text += "node{}";
  }
  for (int i = 0; i < 5; ++i) binary += binary;
  for (const std::string* bytes : {&binary, &text}) {
    EXPECT_THAT(error_of<ResourceExhaustedError>([&] { parse_graph_def(*bytes, "a.pb"); }),
                AllOf(HasSubstr("a.pb has"), HasSubstr("would take more than")));
    const auto growth = testing::memory_growth([&] { parse_graph_def(*bytes); });
    if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
    EXPECT_LT(*growth, 16u << 20);
  }
}

TEST_F(GraphFiles, AGraphOfAHundredThousandOperationsIsRead) {
  proto::GraphDef graph_def = to_graph_def(graph_);
  for (int i = 0; i < 100 * 1000; ++i) {
    proto::NodeDef* node = graph_def.add_node();
    node->set_name("n" + std::to_string(i));
    node->set_op("NoOp");
  }
  EXPECT_EQ(parse_graph_def(proto::serialize(graph_def)).node_size(), graph_def.node_size());
  EXPECT_EQ(parse_graph_def(graph_def.DebugString()).node_size(), graph_def.node_size());
}

std::vector<std::string> warnings_of(const std::function<void()>& work) {
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& message) {
    if (level >= LogLevel::kWarning) warnings.push_back(message);
  });
  work();
  set_log_sink(before);
  return warnings;
}

// As TensorFlow 2.8 and later write them.
TEST_F(GraphFiles, FieldsOfANewerTensorFlowAreSkippedAndNamedOnce) {
  const std::string node = R"(node {
    name: "a" op: "NoOp"
    experimental_type { type_id: TFT_OPTIONAL args { type_id: TFT_PRODUCT args { type_id: TFT_TENSOR } } }
  })";
  const std::string text = node + node + "debug_info { files: [\"a.py\", 'b.py'] traces { key: \"k\" } }";
  proto::GraphDef graph_def;
  const auto warnings = warnings_of([&] { graph_def = parse_graph_def(text, "graph.pbtxt"); });
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr("graph.pbtxt"), HasSubstr("NodeDef.experimental_type, GraphDef.debug_info")));
  EXPECT_EQ(graph_def.node_size(), 2);
  EXPECT_EQ(graph_def.node(1).op(), "NoOp");
  EXPECT_EQ(warnings_of([&] { parse_graph_def(graph_def.DebugString()); }).size(), 0u);
}

TEST_F(GraphFiles, SkippedFieldsHaveTheSameLimits) {
  const std::string deep = "new_field " + std::string(5000, '{') + std::string(5000, '}') + " node {}";
  EXPECT_THROW(parse_graph_def(deep), DataLossError);
  std::string many = "node {} ";
  for (int i = 0; i < 1000; ++i) many += "field_" + std::to_string(i) + ": 1 ";
  const auto warnings = warnings_of([&] { parse_graph_def(many); });
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("field_19 and others"));
}

TEST_F(GraphFiles, ADamagedBinaryGraphIsNotTakenForText) {
  std::string bytes = proto::serialize(to_meta_graph_def(graph_));
  const auto message = [&](const std::string& damaged) {
    return error_of<DataLossError>([&] { parse_meta_graph(damaged, "m.meta"); });
  };
  EXPECT_THAT(message(bytes.substr(0, bytes.size() - 3)),
              AllOf(HasSubstr("Cannot parse file m.meta: it is binary and damaged"), HasSubstr("at byte"),
                    Not(HasSubstr("as text"))));
  const size_t graph = bytes.find("Const");
  bytes[graph - 1] = '\x7f';
  EXPECT_THAT(message(bytes), HasSubstr("is malformed"));
}

TEST_F(GraphFiles, AnotherFileOfTheCheckpointIsToldFromItsMetaGraph) {
  const std::string prefix = directory_.file("model.ckpt-7");
  write_meta_graph(to_meta_graph_def(graph_), prefix + ".meta");
  file("model.ckpt-7.index", std::string("\0\1", 2));
  const std::string hint = "The meta graph of that checkpoint is " + prefix + ".meta";
  EXPECT_THAT(error_of<NotFoundError>([&] { read_meta_graph(files_, prefix); }), HasSubstr(hint));
  EXPECT_THAT(error_of<NotFoundError>([&] { read_meta_graph(files_, prefix + ".data-00000-of-00001"); }),
              HasSubstr(hint));
  EXPECT_THAT(error_of<DataLossError>([&] { read_meta_graph(files_, prefix + ".index"); }), HasSubstr(hint));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { read_meta_graph(files_, directory_.path()); }),
              HasSubstr("is a directory"));
}

class GenuineGraphs : public GraphFiles {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LONGHAUL_FIXTURES");
    LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
    root_ = folder;
  }
  std::string root_;
};

struct GenuineGraph {
  const char* file;
  size_t bytes;    // that TensorFlow's own parser makes of it
  bool canonical;  // printing it again gives the same text, but for 2.0, which Python prints where C++ prints 2
};
const GenuineGraph kGenuineGraphs[] = {
    {"tf-aot/test_graph_tfadd.pbtxt", 208, false},
    {"tf-aot/test_graph_tfunknownop.pbtxt", 270, false},
    {"tf-grappler/function_error.pbtxt", 341, true},
    {"tf-grappler/function_functional_while.pbtxt", 835, true},
    {"tf-grappler/function_switch.pbtxt", 856, true},
    {"tf-grappler/function_switch_2.pbtxt", 856, true},
    {"tf-grappler/function_switch_shapes.pbtxt", 1037, true},
    {"tf-grappler/large_function_graph.pbtxt", 3368, false},
    {"tf-grappler/loops_and_queues.pbtxt", 3840, true},
    {"tf-grappler/loops_and_resource_vars.pbtxt", 3736, true},
    {"tf-grappler/merge_without_loops.pbtxt", 1162, true},
    {"tf-grappler/nested_loop.pbtxt", 3283, true},
    {"tf-grappler/queues_and_loops.pbtxt", 2341, true},
    {"tf-grappler/simple_function.pbtxt", 342, true},
    {"tf-grappler/while_loop.pbtxt", 1500, true},
    {"tf-grappler/while_loop_var_handle_op.pbtxt", 1590, false},
    {"tf-profiler/graph.pbtxt", 4841, false},
};

TEST_F(GenuineGraphs, GiveWhatTensorFlowMakesOfThem) {  // PR-1
  for (const GenuineGraph& graph : kGenuineGraphs) {
    const std::string path = root_ + "/graphs/" + graph.file;
    const std::string text = read_file(files_, path);
    const proto::GraphDef graph_def = read_graph_def(files_, path);
    const std::string binary = proto::serialize(graph_def);
    EXPECT_EQ(binary.size(), graph.bytes) << path;
    EXPECT_EQ(proto::serialize(parse_graph_def(binary)), binary) << path;
    const std::string printed = read_file(files_, write_graph(graph_def, directory_.path(), "graph.pbtxt"));
    const std::string plain = std::regex_replace(text, std::regex(": (-?[0-9]+)\\.0\n"), ": $1\n");
    EXPECT_EQ(printed == plain, graph.canonical) << path;
    EXPECT_EQ(proto::serialize(parse_graph_def(printed)), binary) << path;
  }
}

TEST_F(GenuineGraphs, NameAllThatTheyNeedAndWeLack) {
  const auto refusal = [&](const proto::GraphDef& graph_def) {
    return error_of<UnimplementedError>([&] { import_graph_def(graph_, graph_def); });
  };
  EXPECT_THAT(refusal(read_graph_def(files_, root_ + "/graphs/tf-profiler/graph.pbtxt")),
              HasSubstr("Add (3 nodes), Conv2D (2 nodes), Mul (3 nodes), RandomStandardNormal (3 nodes)"));
  EXPECT_THAT(refusal(read_graph_def(files_, root_ + "/graphs/tf-aot/test_graph_tfunknownop.pbtxt")),
              HasSubstr("SomeUnknownOp (1 node)"));
  EXPECT_THAT(refusal(read_graph_def(files_, root_ + "/graphs/tf-grappler/function_functional_while.pbtxt")),
              AllOf(HasSubstr("functions, but these are not supported"), HasSubstr("MyFunc_AenMyWWx1Us")));
  EXPECT_THAT(refusal(read_graph_def(files_, root_ + "/graphs/tf-grappler/while_loop.pbtxt")), HasSubstr("loops"));
  const proto::MetaGraphDef meta = read_meta_graph(files_, root_ + "/graphs/tf-profiler/ckpt.meta");
  EXPECT_EQ(meta.graph_def().node_size(), 49);
  EXPECT_EQ(proto::serialize(meta).size(), 8435u);
  EXPECT_THAT(refusal(meta.graph_def()), HasSubstr("Conv2D (2 nodes)"));
}

}  // namespace
}  // namespace longhaul

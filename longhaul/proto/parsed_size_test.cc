#include "longhaul/proto/parsed_size.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "longhaul/proto/graph.pb.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/tensor_bundle.pb.h"

namespace longhaul::proto {
namespace {

// As large graphs are: nodes with names in scopes, inputs, attrs, a constant now and then.
GraphDef honest_graph(int nodes) {
  GraphDef graph;
  for (int i = 0; i < nodes; ++i) {
    NodeDef* node = graph.add_node();
    node->set_name("transformer/layer_" + std::to_string(i) + "/attention/MatMul");
    node->set_op(i % 10 == 0 ? "Const" : "MatMul");
    node->add_input("transformer/layer_" + std::to_string(i / 2) + "/attention/Reshape");
    node->add_input("^init");
    (*node->mutable_attr())["T"].set_type(DT_FLOAT);
    (*node->mutable_attr())["transpose_a"].set_b(false);
    (*node->mutable_attr())["transpose_b"].set_b(i % 2 == 0);
    auto* shapes = (*node->mutable_attr())["_output_shapes"].mutable_list();
    shapes->add_shape()->add_dim()->set_size(768);
    if (i % 10 == 0) {
      TensorProto* value = (*node->mutable_attr())["value"].mutable_tensor();
      value->set_dtype(DT_INT32);
      for (int j = 0; j < 20; ++j) value->add_int_val(j);
    }
  }
  return graph;
}

uint64_t size_of(const google::protobuf::Message& message) {
  return parsed_size(*message.GetDescriptor(), serialize(message)).value();
}

uint64_t text_size_of(const google::protobuf::Message& message) {
  return parsed_text_size(*message.GetDescriptor(), message.DebugString());
}

TEST(ParsedSize, IsAboveWhatTheMessageTakesButNotFar) {
  const GraphDef graph = honest_graph(1000);
  const uint64_t taken = graph.SpaceUsedLong();
  EXPECT_GE(size_of(graph), taken);
  EXPECT_LE(size_of(graph), 3 * taken);
  EXPECT_GE(text_size_of(graph), taken);
  EXPECT_LE(text_size_of(graph), 4 * taken);
}

TEST(ParsedSize, OfAnHonestGraphIsWellBelowTheLimit) {
  const GraphDef graph = honest_graph(1000);
  EXPECT_LE(size_of(graph), kParsedPerByte * serialize(graph).size());
  EXPECT_LE(text_size_of(graph), kParsedPerByte * graph.DebugString().size());
}

TEST(ParsedSize, GrowsWithNodesWithoutContents) {
  GraphDef graph;
  for (int i = 0; i < 1000; ++i) graph.add_node();
  const uint64_t taken = graph.SpaceUsedLong();
  EXPECT_GE(size_of(graph), taken);
  EXPECT_GE(text_size_of(graph), taken);
  EXPECT_GE(parsed_text_size(*graph.GetDescriptor(), "node: [{}, {}, <>, {}]"), 4 * sizeof(NodeDef));
  EXPECT_GE(parsed_text_size(*graph.GetDescriptor(), "node {} node # a {\n <>"), 2 * sizeof(NodeDef));
}

TEST(ParsedSize, SeesAMessageWithinAnAny) {
  const auto& type = *CollectionDef::AnyList::descriptor();
  const std::string text = "value { [type.googleapis.com/longhaul.proto.GraphDef] { node: [{}, {}, {}, {}] } }";
  EXPECT_GE(parsed_text_size(type, text), 4 * sizeof(NodeDef));
}

TEST(ParsedSize, CountsNoBracketInATextOrAComment) {
  const auto& type = *GraphDef::descriptor();
  EXPECT_EQ(parsed_text_size(type, R"(node { name: "{{" } # node {{)"),
            parsed_text_size(type, R"(node { name: "xx" })"));
  EXPECT_EQ(parsed_text_size(type, R"(node { name: 'a\'{' })"), parsed_text_size(type, R"(node { name: 'aaaa' })"));
}

TEST(ParsedSize, CountsNumbersThatAreUnknownPackedOrAlone) {
  const auto& type = *TensorProto::descriptor();
  const std::string packed = std::string("\x52\x04", 2) + "\1\2\3\4";  // int64_val, 10
  EXPECT_GE(parsed_size(type, packed).value(), 4 * sizeof(int64_t));
  EXPECT_GE(parsed_size(type, "\x50\1\x50\2").value(), 2 * sizeof(int64_t));
  EXPECT_GE(parsed_size(type, "\x98\x06\1\x98\x06\1").value(), 2 * 16u);  // 99, which no tensor has
}

TEST(ParsedSize, StopsAboveTheMost) {
  const std::string bytes = serialize(honest_graph(1000));
  const uint64_t counted = parsed_size(*GraphDef::descriptor(), bytes, 100, 5000).value();
  EXPECT_GT(counted, 5000u);
  EXPECT_LT(counted, 10000u);
}

TEST(ParsedSize, IsNothingOfWhatIsMalformedOrTooDeep) {
  const auto& type = *GraphDef::descriptor();
  const std::string bytes = serialize(honest_graph(1));
  EXPECT_EQ(parsed_size(type, bytes.substr(0, bytes.size() - 1)), std::nullopt);
  EXPECT_EQ(parsed_size(type, bytes, 3), std::nullopt);
  EXPECT_EQ(parsed_size(type, ""), 0u);
}

TEST(ParseWithinLimits, RefusesWhatWouldTakeFarMoreThanItsBytes) {
  std::string nodes;
  for (int i = 0; i < 1000 * 1000; ++i) nodes += std::string("\x0a\x00", 2);
  GraphDef graph;
  EXPECT_FALSE(parse_within_limits(nodes, &graph));
  EXPECT_EQ(graph.node_size(), 0);
  EXPECT_TRUE(parse_within_limits(std::string_view(nodes).substr(0, 2000), &graph)) << "a little is no harm";
  EXPECT_EQ(graph.node_size(), 1000);
}

TEST(ParseWithinLimits, TakesAnHonestGraphOfManyNodes) {
  GraphDef graph;
  EXPECT_TRUE(parse_within_limits(serialize(honest_graph(50 * 1000)), &graph));
  EXPECT_EQ(graph.node_size(), 50 * 1000);
}

}  // namespace
}  // namespace longhaul::proto

#include "longhaul/cluster/wire/graph_extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/error.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class GraphExtension : public ::testing::Test {
 protected:
  void extend(const std::string& text) { extend_graph(graph_, parse_graph_def(text)); }
  std::string refusal(const std::string& text) {
    return error_of<InvalidArgumentError>([&] { extend(text); });
  }
  static std::string constant(const std::string& name) {
    return "node { name: '" + name +
           "' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: "
           "DT_FLOAT tensor_shape {} float_val: 2 } } } }";
  }
  Graph graph_;
};

TEST_F(GraphExtension, LaterNodesUseEarlierOnes) {
  extend(constant("a"));
  extend("node { name: 'b' op: 'Identity' input: 'a' input: '^a' } node { name: 'c' op: 'NoOp' input: '^b' }");
  extend("node { name: 'd' op: 'Identity' input: 'b:0' input: '^c' }");
  EXPECT_EQ(graph_.num_operations(), 4);
  EXPECT_EQ(graph_.operation("d").inputs()[0], graph_.output("b:0"));
  EXPECT_EQ(graph_.operation("d").control_inputs()[0], graph_.operation("c"));
  EXPECT_EQ(graph_.output("d:0").dtype(), kFloat);
}

TEST_F(GraphExtension, ANodeMayHaveTheNameOfAScope) {
  extend(constant("v/initial_value"));
  extend(constant("v"));
  EXPECT_EQ(graph_.operation("v").name(), "v");
}

TEST_F(GraphExtension, ANodeComesOnce) {  // SS-10
  extend(constant("a"));
  EXPECT_THAT(refusal(constant("b") + constant("a")),
              HasSubstr("includes node 'a', which was created by a previous call"));
  EXPECT_EQ(graph_.num_operations(), 1);
}

TEST_F(GraphExtension, NamesAreCheckedFirst) {  // SS-12
  for (const char* name : {"", "a b", "_a", "/a", "a:0", "^a"}) {
    EXPECT_THAT(refusal(constant(name)), HasSubstr("Illegal op name")) << name;
  }
  extend(constant("a"));
  for (const char* input : {"", "a:", "a:00", "a:01", "^a:0", "a b", "a:-1", "_a"}) {
    EXPECT_THAT(refusal("node { name: 'b' op: 'Identity' input: '" + std::string(input) + "' }"),
                HasSubstr("Illegal op input name"))
        << input;
  }
  EXPECT_NO_THROW(extend(constant(".A-9/x_y")));
}

// What is refused late, too, leaves nothing behind: the client sends the same nodes again.
TEST_F(GraphExtension, AllNodesAreAddedOrNone) {
  extend(constant("a"));
  EXPECT_THAT(refusal(constant("b") + "node { name: 'c' op: 'Identity' }"), HasSubstr("c"));
  EXPECT_THAT(refusal(constant("b") + "node { name: 'c' op: 'Identity' input: 'a:1' }"),
              HasSubstr("the input 'a:1' does not exist: a (Const) has 1 outputs"));
  EXPECT_THAT(refusal(constant("b") + "node { name: 'c' op: 'Identity' input: 'z' }"), HasSubstr("'z'"));
  EXPECT_THROW(extend(constant("b") + "node { name: 'c' op: 'NoSuchOp' }"), UnimplementedError);
  EXPECT_EQ(graph_.num_operations(), 1);
  extend(constant("b"));
  EXPECT_EQ(graph_.num_operations(), 2);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/graph/graph_def/type_attrs.h"

#include <gmock/gmock.h>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/scope.h"

namespace longhaul {
namespace {

class TypeAttrs : public ::testing::Test {
 protected:
  // In the file of a graph.
  static proto::NodeDef written(const Operation& op) {
    proto::GraphDef graph_def = to_graph_def(op.graph());
    for (const proto::NodeDef& node : graph_def.node()) {
      if (node.name() == op.name()) return node;
    }
    return {};
  }

  Graph graph_;
  const Scope root_{graph_};
  const Output variable_ = root_.add("VariableV2", "v", {}, {{"dtype", kDouble}, {"shape", Shape{}}}).output();
  const Output value_ = root_.add("Const", "c", {}, {{"dtype", kDouble}, {"value", Tensor::scalar(1.0)}}).output();
};

TEST_F(TypeAttrs, AreThoseOfTheFirstInput) {
  for (const char* type : {"Assign", "AssignAdd", "AssignSub"}) {
    const proto::NodeDef node = written(root_.add(type, type, {variable_, value_}));
    ASSERT_TRUE(node.attr().contains("T")) << type;
    EXPECT_EQ(node.attr().at("T").type(), proto::DT_DOUBLE) << type;
  }
  EXPECT_EQ(written(root_.add("Identity", "i", {value_})).attr().at("T").type(), proto::DT_DOUBLE);
  EXPECT_EQ(written(root_.add("IsVariableInitialized", "is", {variable_})).attr().at("dtype").type(), proto::DT_DOUBLE);
}

TEST_F(TypeAttrs, OfRowsAreThoseOfTheValuesAndOfTheIndices) {
  const auto variable = [&](const char* name) {
    return root_.add("VariableV2", name, {}, {{"dtype", kDouble}, {"shape", Shape{4, 2}}}).output();
  };
  const auto constant = [&](const char* name, Tensor value) {
    return root_.add("Const", name, {}, {{"dtype", value.dtype()}, {"value", value}}).output();
  };
  const Output rows = constant("rows", Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6})),
               indices = constant("indices", Tensor::of<int32_t>({0, 1, 3}));
  const Output count = constant("count", Tensor::scalar<int64_t>(4));
  const proto::NodeDef update =
      written(root_.add("SparseApplyMomentum", "m", {variable("w"), variable("w/m"), value_, rows, indices, value_}));
  EXPECT_EQ(update.attr().at("T").type(), proto::DT_DOUBLE);
  EXPECT_EQ(update.attr().at("Tindices").type(), proto::DT_INT32);
  const proto::NodeDef change = written(root_.add("ScatterSub", "s", {variable("x"), indices, rows}));
  EXPECT_EQ(change.attr().at("Tindices").type(), proto::DT_INT32);
  proto::NodeDef sum = written(root_.add("UnsortedSegmentSum", "sum", {rows, indices, count}));
  EXPECT_EQ(sum.attr().at("T").type(), proto::DT_DOUBLE);
  EXPECT_EQ(sum.attr().at("Tnumsegments").type(), proto::DT_INT64);
  remove_type_attrs(&sum);
  EXPECT_EQ(sum.attr_size(), 0);
}

TEST_F(TypeAttrs, CountInputsToo) {
  const auto text = [&] { return root_.add("Const", "t", {}, {{"dtype", kString}, {"value", Tensor::scalar("a")}}); };
  const Operation join =
      root_.add("StringJoin", "j", {text().output(), text().output()}, {{"separator", std::string()}});
  EXPECT_EQ(written(join).attr().at("N").i(), 2);
}

TEST_F(TypeAttrs, ThatAreThereStay) {
  const proto::NodeDef node = written(root_.add("Identity", "i", {value_}, {{"T", kDouble}, {"other", int64_t{1}}}));
  EXPECT_EQ(node.attr_size(), 2);
}

TEST_F(TypeAttrs, AreRemovedAndNoOthers) {
  proto::NodeDef node = written(root_.add("Assign", "a", {variable_, value_}, {{"validate_shape", true}}));
  EXPECT_EQ(node.attr_size(), 2);
  remove_type_attrs(&node);
  EXPECT_EQ(node.attr_size(), 1);
  EXPECT_TRUE(node.attr().contains("validate_shape"));
}

}  // namespace
}  // namespace longhaul

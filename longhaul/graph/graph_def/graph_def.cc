#include "longhaul/graph/graph_def/graph_def.h"

#include "longhaul/graph/graph_def/attr_value.h"
#include "longhaul/graph/graph_def/type_attrs.h"

namespace longhaul {
namespace {

std::string input_name(const Output& input) {
  return input.index() == 0 ? input.op().name() : input.name();
}

void add_output_shapes(const Operation& op, proto::NodeDef* node) {
  auto* list = (*node->mutable_attr())["_output_shapes"].mutable_list();
  for (int i = 0; i < op.num_outputs(); ++i) *list->add_shape() = to_proto(op.output(i).shape());
}

}  // namespace

proto::NodeDef to_node_def(const Operation& op, std::string_view left_out_attr) {
  proto::NodeDef node;
  node.set_name(op.name());
  node.set_op(op.type());
  node.set_device(op.device());
  for (const Output& input : op.inputs()) node.add_input(input_name(input));
  for (const Operation& control : op.control_inputs()) node.add_input("^" + control.name());
  for (const auto& [name, attr] : op.attrs()) {
    if (name != left_out_attr) (*node.mutable_attr())[name] = attr_to_proto(attr);
  }
  add_type_attrs(op, &node);
  return node;
}

proto::GraphDef to_graph_def(const Graph& graph, bool add_shapes) {
  proto::GraphDef graph_def;
  for (const Operation& op : graph.operations()) {
    proto::NodeDef* node = graph_def.add_node();
    *node = to_node_def(op);
    if (add_shapes) add_output_shapes(op, node);
  }
  graph_def.mutable_versions()->set_producer(kGraphVersion);
  return graph_def;
}

}  // namespace longhaul

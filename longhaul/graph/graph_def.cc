#include "longhaul/graph/graph_def.h"

namespace longhaul {
namespace {

constexpr int kProducerVersion = 134;  // the graph version of TensorFlow 1.15, which readers check against their own

template <typename T>
void set_list(proto::AttrValue::ListValue* list, const std::vector<T>& values) {
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, int64_t>) {
      list->add_i(value);
    } else if constexpr (std::is_same_v<T, double>) {
      list->add_f(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      list->add_s(value);
    } else if constexpr (std::is_same_v<T, DType>) {
      list->add_type(static_cast<proto::DataType>(value));
    } else {
      *list->add_shape() = to_proto(value);
    }
  }
}

struct AttrToProto {
  proto::AttrValue* out;
  void operator()(int64_t value) const { out->set_i(value); }
  void operator()(double value) const { out->set_f(static_cast<float>(value)); }
  void operator()(bool value) const { out->set_b(value); }
  void operator()(const std::string& value) const { out->set_s(value); }
  void operator()(DType value) const { out->set_type(static_cast<proto::DataType>(value)); }
  void operator()(const Shape& value) const { *out->mutable_shape() = to_proto(value); }
  void operator()(const Tensor& value) const { *out->mutable_tensor() = to_proto(value); }
  void operator()(const std::shared_ptr<HostFunction>&) const { out->set_placeholder("a function of the program"); }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    set_list(out->mutable_list(), values);
  }
};

std::string input_name(const Output& input) {
  return input.index() == 0 ? input.op().name() : input.name();
}

void add_output_shapes(const Operation& op, proto::NodeDef* node) {
  auto* list = (*node->mutable_attr())["_output_shapes"].mutable_list();
  for (int i = 0; i < op.num_outputs(); ++i) *list->add_shape() = to_proto(op.output(i).shape());
}

void add_node(const Operation& op, bool add_shapes, proto::GraphDef* graph_def) {
  proto::NodeDef* node = graph_def->add_node();
  node->set_name(op.name());
  node->set_op(op.type());
  node->set_device(op.device());
  for (const Output& input : op.inputs()) node->add_input(input_name(input));
  for (const Operation& control : op.control_inputs()) node->add_input("^" + control.name());
  for (const auto& [name, attr] : op.attrs()) std::visit(AttrToProto{&(*node->mutable_attr())[name]}, attr);
  if (add_shapes) add_output_shapes(op, node);
}

}  // namespace

proto::GraphDef to_graph_def(const Graph& graph, bool add_shapes) {
  proto::GraphDef graph_def;
  for (const Operation& op : graph.operations()) add_node(op, add_shapes, &graph_def);
  graph_def.mutable_versions()->set_producer(kProducerVersion);
  return graph_def;
}

}  // namespace longhaul

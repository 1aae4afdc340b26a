#pragma once

#include <string_view>

#include "longhaul/graph/graph.h"
#include "longhaul/proto/graph.pb.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/proto/tensor.pb.h"

namespace longhaul {

inline constexpr int kGraphVersion = 134;  // TensorFlow 1.15's; readers compare it with their own

// The form of a graph in files. With add_shapes, the attr _output_shapes of each node has the known shapes of its
// outputs.
proto::GraphDef to_graph_def(const Graph& graph, bool add_shapes = false);

// One node of it, without the attr of that name.
proto::NodeDef to_node_def(const Operation& op, std::string_view left_out_attr = "");

// The graph with shapes, its collections and, if given, its SaverDef. The same as export_meta_graph (meta_graph.h)
// without further options.
proto::MetaGraphDef to_meta_graph_def(const Graph& graph, const proto::SaverDef* saver_def = nullptr);

proto::TensorShapeProto to_proto(const Shape& shape);
proto::TensorProto to_proto(const Tensor& tensor);

// InvalidArgumentError: Tensor does not have the dtype, or the sizes do not match the contents.
Shape from_proto(const proto::TensorShapeProto& shape);
Tensor from_proto(const proto::TensorProto& tensor);

}  // namespace longhaul

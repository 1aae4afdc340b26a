#pragma once

#include "longhaul/graph/graph.h"
#include "longhaul/proto/graph.pb.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/proto/tensor.pb.h"

namespace longhaul {

inline constexpr int kGraphVersion = 134;  // TensorFlow 1.15's, which readers check against their own

// The graph as it is in files. With shapes, each node has the known shapes of its outputs in the attr _output_shapes.
proto::GraphDef to_graph_def(const Graph& graph, bool add_shapes = false);

// The graph with shapes, its collections and, if given, its SaverDef: export_meta_graph (meta_graph.h) without further
// options.
proto::MetaGraphDef to_meta_graph_def(const Graph& graph, const proto::SaverDef* saver_def = nullptr);

proto::TensorShapeProto to_proto(const Shape& shape);
proto::TensorProto to_proto(const Tensor& tensor);

// InvalidArgumentError: a dtype that we cannot hold, or sizes that do not match the contents.
Shape from_proto(const proto::TensorShapeProto& shape);
Tensor from_proto(const proto::TensorProto& tensor);

}  // namespace longhaul

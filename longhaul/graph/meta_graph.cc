#include <set>

#include "longhaul/base/log.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/proto/variable.pb.h"

namespace longhaul {
namespace {

proto::SaveSliceInfoDef to_proto(const SaveSliceInfo& slice) {
  proto::SaveSliceInfoDef def;
  def.set_full_name(slice.full_name);
  def.mutable_full_shape()->Assign(slice.full_shape.begin(), slice.full_shape.end());
  def.mutable_var_offset()->Assign(slice.offset.begin(), slice.offset.end());
  def.mutable_var_shape()->Assign(slice.shape.begin(), slice.shape.end());
  return def;
}

std::string serialize_variable(const VariableInfo& variable) {
  proto::VariableDef def;
  def.set_variable_name(variable.ref.name());
  def.set_initializer_name(variable.initializer.name());
  def.set_snapshot_name(variable.read.name());
  def.set_initial_value_name(variable.initial_value.name());
  def.set_trainable(variable.trainable);
  if (variable.slice) *def.mutable_save_slice_info_def() = to_proto(*variable.slice);
  return def.SerializeAsString();
}

struct ItemToProto {
  proto::CollectionDef* out;
  void operator()(int64_t value) const { out->mutable_int64_list()->add_value(value); }
  void operator()(float value) const { out->mutable_float_list()->add_value(value); }
  void operator()(const std::string& bytes) const { out->mutable_bytes_list()->add_value(bytes); }
  void operator()(const Operation& op) const { out->mutable_node_list()->add_value(op.name()); }
  void operator()(const Output& output) const { out->mutable_node_list()->add_value(output.name()); }
  void operator()(const VariableInfo& variable) const {
    out->mutable_bytes_list()->add_value(serialize_variable(variable));
  }
  void operator()(const std::shared_ptr<const Saveable>&) const {}
  void operator()(const AnyMessage& message) const {
    google::protobuf::Any* any = out->mutable_any_list()->add_value();
    any->set_type_url(message.type_url);
    any->set_value(message.value);
  }
};

// The number of the CollectionDef's kind that an item goes into.
proto::CollectionDef::KindCase kind_of(const CollectionItem& item) {
  proto::CollectionDef probe;
  std::visit(ItemToProto{&probe}, item);
  return probe.kind_case();
}

void add_collections(const Graph& graph, proto::MetaGraphDef* meta) {
  for (const std::string& key : graph.collection_keys()) {
    const std::vector<CollectionItem> items = graph.collection(key);
    std::set<proto::CollectionDef::KindCase> kinds;
    for (const CollectionItem& item : items) kinds.insert(kind_of(item));
    if (kinds.contains(proto::CollectionDef::KIND_NOT_SET)) continue;
    if (kinds.size() > 1) {
      log_warning("collection {} holds things of different kinds and is left out of the meta graph", key);
      continue;
    }
    proto::CollectionDef& collection = (*meta->mutable_collection_def())[key];
    for (const CollectionItem& item : items) std::visit(ItemToProto{&collection}, item);
  }
}

void add_op_list(const Graph& graph, proto::MetaGraphDef* meta) {
  std::set<std::string> types;
  for (const Operation& op : graph.operations()) types.insert(op.type());
  for (const std::string& type : types)
    meta->mutable_meta_info_def()->mutable_stripped_op_list()->add_op()->set_name(type);
}

}  // namespace

proto::MetaGraphDef to_meta_graph_def(const Graph& graph, const proto::SaverDef* saver_def) {
  proto::MetaGraphDef meta;
  *meta.mutable_graph_def() = to_graph_def(graph, /*add_shapes=*/true);
  meta.mutable_meta_info_def()->set_tensorflow_version("1.15.5");
  meta.mutable_meta_info_def()->set_tensorflow_git_version("longhaul");
  add_op_list(graph, &meta);
  add_collections(graph, &meta);
  if (saver_def != nullptr) *meta.mutable_saver_def() = *saver_def;
  return meta;
}

}  // namespace longhaul

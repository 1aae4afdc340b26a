#include "longhaul/graph/meta_graph/collection_def.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <set>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/graph/meta_graph/variable_def.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/queue_runner.pb.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {
namespace {

using Items = std::vector<CollectionItem>;

std::optional<std::string> same_name(std::string_view name) {
  return std::string(name);
}

bool map_name(std::string* name, const NameMap& names) {
  if (name->empty()) return true;
  const auto mapped = names(*name);
  if (mapped) *name = *mapped;
  return mapped.has_value();
}

std::optional<proto::QueueRunnerDef> map_runner_names(const proto::QueueRunnerDef& given, const NameMap& names) {
  proto::QueueRunnerDef def = given;
  bool all = map_name(def.mutable_queue_name(), names) && map_name(def.mutable_close_op_name(), names) &&
             map_name(def.mutable_cancel_op_name(), names);
  for (std::string& enqueue : *def.mutable_enqueue_op_name()) all = all && map_name(&enqueue, names);
  return all ? std::optional(def) : std::nullopt;
}

template <typename Def>
std::optional<std::string> map_names_in(const std::string& bytes, const NameMap& names,
                                        std::optional<Def> map(const Def&, const NameMap&)) {
  Def def;
  if (!proto::parse_within_limits(bytes, &def)) return bytes;
  const auto mapped = map(def, names);
  return mapped ? std::optional(proto::serialize(*mapped)) : std::nullopt;
}

// Bytes of a kind that has names inside. Nothing: it stays out.
std::optional<std::string> map_names_in_item(const std::string& key, const std::string& bytes, const NameMap& names,
                                             bool* has_names) {
  const google::protobuf::LogSilencer silence;
  *has_names = true;
  if (key == collections::kSavers) return map_names_in(bytes, names, longhaul::map_names);
  if (key == collections::kQueueRunners) return map_names_in(bytes, names, map_runner_names);
  *has_names = false;
  return bytes;
}

struct ItemToProto {
  const std::string& key;
  const CollectionExport& options;
  proto::CollectionDef* out;

  void operator()(int64_t value) const {
    if (!options.named_only) out->mutable_int64_list()->add_value(value);
  }
  void operator()(float value) const {
    if (!options.named_only) out->mutable_float_list()->add_value(value);
  }
  void operator()(const std::string& bytes) const {
    bool has_names = false;
    const auto mapped = map_names_in_item(key, bytes, options.names, &has_names);
    if (mapped && (has_names || !options.named_only)) out->mutable_bytes_list()->add_value(*mapped);
  }
  void operator()(const Operation& op) const { add_node(op.name()); }
  void operator()(const Output& output) const { add_node(output.name()); }
  void operator()(const VariableInfo& variable) const {
    const auto def = variable_to_proto(variable, options.names);
    if (def) out->mutable_bytes_list()->add_value(proto::serialize(*def));
  }
  void operator()(const AnyMessage& message) const {
    if (options.named_only) return;
    google::protobuf::Any* any = out->mutable_any_list()->add_value();
    any->set_type_url(message.type_url);
    any->set_value(message.value);
  }
  void operator()(const std::shared_ptr<const Saveable>&) const {}
  void add_node(const std::string& name) const {
    const auto mapped = options.names(name);
    if (mapped) out->mutable_node_list()->add_value(*mapped);
  }
};

// The items of one collection of a file, for a graph.
class CollectionImport {
 public:
  CollectionImport(Graph& graph, const std::string& key, const std::string& prefix,
                   const std::set<std::string>& trainable)
      : graph_(graph), key_(key), prefix_(prefix), trainable_(trainable) {}

  Items read(const proto::CollectionDef& def) const {
    Items items;
    for (const std::string& name : def.node_list().value()) items.push_back(find_node(prefix_ + name));
    for (const std::string& bytes : def.bytes_list().value()) items.push_back(read_bytes(bytes));
    for (const int64_t value : def.int64_list().value()) items.emplace_back(value);
    for (const float value : def.float_list().value()) items.emplace_back(value);
    for (const auto& any : def.any_list().value()) items.emplace_back(AnyMessage{any.type_url(), any.value()});
    return items;
  }

 private:
  CollectionItem find_node(const std::string& name) const {
    if (const Output output = graph_.find_output(name); output.valid()) return output;
    if (const Operation op = graph_.find_operation(name)) return op;
    throw InvalidArgumentError(fmt::format("'{}' is not in the graph", excerpt(name)));
  }

  CollectionItem read_bytes(const std::string& bytes) const {
    static const std::set<std::string> kOfVariables = {collections::kGlobalVariables,
                                                       collections::kLocalVariables,
                                                       collections::kTrainableVariables,
                                                       collections::kGlobalStep,
                                                       "model_variables",
                                                       "moving_average_variables",
                                                       "metric_variables"};
    if (kOfVariables.contains(key_)) return read_variable(bytes);
    if (auto variable = recognise_variable(bytes)) return *std::move(variable);
    bool has_names = false;
    const NameMap add_prefix = [this](std::string_view name) { return prefix_ + std::string(name); };
    return prefix_.empty() ? bytes : *map_names_in_item(key_, bytes, add_prefix, &has_names);
  }

  VariableInfo read_variable(const std::string& bytes) const {
    proto::VariableDef def;
    if (!def.ParseFromString(bytes)) throw InvalidArgumentError("an element is not a VariableDef");
    VariableInfo variable = variable_from_proto(graph_, def, prefix_);
    variable.trainable = variable.trainable || trainable_.contains(def.variable_name());
    return variable;
  }

  std::optional<VariableInfo> recognise_variable(const std::string& bytes) const {
    proto::VariableDef def;
    if (!def.ParseFromString(bytes) || def.variable_name().empty() || def.snapshot_name().empty()) return std::nullopt;
    try {
      VariableInfo variable = variable_from_proto(graph_, def, prefix_);
      const auto strip = [this](std::string_view name) { return std::string(name.substr(prefix_.size())); };
      const auto again = variable_to_proto(variable, strip);
      if (again && proto::serialize(*again) == bytes) return variable;
    } catch (const Error&) {
    }
    return std::nullopt;
  }

  Graph& graph_;
  const std::string& key_;
  const std::string& prefix_;
  const std::set<std::string>& trainable_;
};

// Files of older writers say it by the collection alone.
std::set<std::string> trainable_variables(const proto::MetaGraphDef& meta) {
  std::set<std::string> names;
  const auto it = meta.collection_def().find(collections::kTrainableVariables);
  if (it == meta.collection_def().end()) return names;
  for (const std::string& bytes : it->second.bytes_list().value()) {
    proto::VariableDef def;
    if (def.ParseFromString(bytes)) names.insert(def.variable_name());
  }
  return names;
}

}  // namespace

std::optional<proto::SaverDef> map_names(const proto::SaverDef& def, const NameMap& names) {
  proto::SaverDef mapped = def;
  const bool all = map_name(mapped.mutable_filename_tensor_name(), names) &&
                   map_name(mapped.mutable_save_tensor_name(), names) &&
                   map_name(mapped.mutable_restore_op_name(), names);
  return all ? std::optional(mapped) : std::nullopt;
}

std::optional<proto::CollectionDef> collection_to_proto(const std::string& key, const Items& items,
                                                        const CollectionExport& options) {
  const CollectionExport with_names{options.names ? options.names : same_name, options.named_only};
  proto::CollectionDef collection;
  std::set<proto::CollectionDef::KindCase> kinds;
  for (const CollectionItem& item : items) {
    proto::CollectionDef one;
    std::visit(ItemToProto{key, with_names, &one}, item);
    if (one.kind_case() != proto::CollectionDef::KIND_NOT_SET) kinds.insert(one.kind_case());
    if (kinds.size() > 1) {
      log_warning("collection {} has items of different kinds and is omitted from the meta graph", key);
      return std::nullopt;
    }
    collection.MergeFrom(one);
  }
  if (kinds.empty()) return std::nullopt;
  return collection;
}

void import_collections(Graph& graph, const proto::MetaGraphDef& meta, const std::string& prefix) {
  const google::protobuf::LogSilencer silence;  // what is no VariableDef need not be reported
  const std::set<std::string> trainable = trainable_variables(meta);
  std::map<std::string, const proto::CollectionDef*> sorted;
  for (const auto& [key, collection] : meta.collection_def()) sorted[key] = &collection;
  sorted.erase("unbound_inputs");  // they are bound now
  for (const auto& [key, collection] : sorted) {
    try {
      const Items items = CollectionImport(graph, key, prefix, trainable).read(*collection);
      for (const CollectionItem& item : items) graph.add_to_collection(key, item);
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("collection {}: {}", key, error.what()));
    }
  }
}

}  // namespace longhaul

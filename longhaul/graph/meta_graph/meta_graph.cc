#include "longhaul/graph/meta_graph/meta_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "longhaul/base/nearest_name.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/meta_graph/collection_def.h"
#include "longhaul/graph/meta_graph/default_attrs.h"
#include "longhaul/graph/meta_graph/default_ready_ops.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

constexpr char kUnboundInputs[] = "unbound_inputs";
constexpr char kUnboundPrefix[] = "$unbound_inputs_";
constexpr std::string_view kColocatedWith = "loc:@";

std::string scope_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash + 1));
}

// The scopes of all savers but one. What only restores is none: it may be how a variable begins.
std::set<std::string> other_saver_scopes(const Graph& graph, const std::optional<proto::SaverDef>& kept) {
  std::set<std::string> scopes;
  for (const Operation& op : graph.operations()) {
    if (op.type() == "SaveV2") scopes.insert(scope_of(op.name()));
  }
  scopes.erase("");
  if (kept) {
    scopes.erase(scope_of(kept->save_tensor_name()));
    scopes.erase(scope_of(kept->restore_op_name()));
  }
  return scopes;
}

class Exporter {
 public:
  Exporter(const Graph& graph, const ExportMetaGraphOptions& options)
      : graph_(graph), options_(options), prefix_(options.export_scope), made_again_(default_ready_ops(graph)) {
    if (!prefix_.empty() && !prefix_.ends_with('/')) prefix_ += '/';
    if (options.clear_extraneous_savers) left_out_ = other_saver_scopes(graph, options.saver_def);
  }

  ExportedMetaGraph run() {
    add_nodes();
    add_info();
    add_collections();
    add_unbound_inputs();
    add_saver();
    find_variables();
    return std::move(result_);
  }

 private:
  bool includes(std::string_view name) const {
    const std::string_view op = operation_name(name);
    if (!op.starts_with(prefix_) || made_again_.contains(std::string(op))) return false;
    return std::none_of(left_out_.begin(), left_out_.end(), [&](const auto& scope) { return op.starts_with(scope); });
  }

  // Its name in the file.
  std::optional<std::string> name_inside(std::string_view name) const {
    if (!includes(name)) return std::nullopt;
    return std::string(name.substr(prefix_.size()));
  }

  std::string input_inside(const std::string& input) {
    const bool control = input.starts_with('^');
    const std::string name = control ? input.substr(1) : input;
    const char* const caret = control ? "^" : "";
    if (const auto inside = name_inside(name)) return caret + *inside;
    const std::string unbound = fmt::format("{}{}{}", caret, kUnboundPrefix, name);
    unbound_.insert(unbound);
    return unbound;
  }

  void add_nodes() {
    proto::GraphDef all = to_graph_def(graph_, /*add_shapes=*/true);
    proto::GraphDef* graph_def = result_.meta.mutable_graph_def();
    *graph_def->mutable_versions() = all.versions();
    for (proto::NodeDef& node : *all.mutable_node()) {
      if (!includes(node.name())) continue;
      change(&node);
      types_.insert(node.op());
      graph_def->add_node()->Swap(&node);
    }
    if (!prefix_.empty() && graph_def->node_size() == 0) {
      throw InvalidArgumentError(fmt::format("the graph has nothing in the scope '{}'", options_.export_scope));
    }
  }

  void change(proto::NodeDef* node) {
    node->set_name(*name_inside(node->name()));
    for (std::string& input : *node->mutable_input()) input = input_inside(input);
    if (options_.clear_devices) node->clear_device();
    if (options_.strip_default_attrs) strip_default_attrs(node);
    if (!prefix_.empty()) strip_colocations(node);
  }

  void strip_colocations(proto::NodeDef* node) const {
    const auto attr = node->mutable_attr()->find("_class");
    if (attr == node->mutable_attr()->end()) return;
    proto::AttrValue stripped;
    for (const std::string& place : attr->second.list().s()) {
      if (!place.starts_with(kColocatedWith)) continue;
      const auto inside = name_inside(std::string_view(place).substr(kColocatedWith.size()));
      if (inside) stripped.mutable_list()->add_s(std::string(kColocatedWith) + *inside);
    }
    if (stripped.has_list()) {
      attr->second = stripped;
    } else {
      node->mutable_attr()->erase("_class");
    }
  }

  void add_info() {
    proto::MetaGraphDef::MetaInfoDef* info = result_.meta.mutable_meta_info_def();
    info->set_tensorflow_version("1.15.5");
    info->set_tensorflow_git_version("longhaul");
    info->set_stripped_default_attrs(options_.strip_default_attrs);
    for (const std::string& type : types_) info->mutable_stripped_op_list()->add_op()->set_name(type);
  }

  void add_collections() {
    const std::vector<std::string> there = graph_.collection_keys();
    for (const std::string& key : options_.collections.value_or(there)) {
      if (std::find(there.begin(), there.end(), key) == there.end()) {
        throw InvalidArgumentError(
            fmt::format("the graph has no collection '{}'{}", key, nearest_name_hint(key, there)));
      }
      const auto collection = collection_to_proto(
          key, graph_.collection(key),
          {[this](std::string_view name) { return name_inside(name); }, /*named_only=*/!prefix_.empty()});
      if (collection) (*result_.meta.mutable_collection_def())[key] = *collection;
    }
  }

  void add_unbound_inputs() {
    if (unbound_.empty()) return;
    proto::CollectionDef& collection = (*result_.meta.mutable_collection_def())[kUnboundInputs];
    for (const std::string& name : unbound_) collection.mutable_bytes_list()->add_value(name);
  }

  void add_saver() {
    if (!options_.saver_def) return;
    const auto inside = map_names(*options_.saver_def, [this](std::string_view name) { return name_inside(name); });
    if (inside) *result_.meta.mutable_saver_def() = *inside;
  }

  void find_variables() {
    for (const VariableInfo& variable : graph_.collection_of<VariableInfo>(collections::kGlobalVariables)) {
      const auto name = name_inside(variable.ref.name());
      if (name) result_.variables[*name] = variable;
    }
  }

  const Graph& graph_;
  const ExportMetaGraphOptions& options_;
  std::string prefix_;
  const std::set<std::string> made_again_;
  std::set<std::string> left_out_;  // scopes
  std::set<std::string> types_, unbound_;
  ExportedMetaGraph result_;
};

// An import must say what all the inputs are that the file has not.
void check_unbound_inputs(const proto::MetaGraphDef& meta, const std::map<std::string, Output>& input_map) {
  const auto unbound = meta.collection_def().find(kUnboundInputs);
  if (unbound == meta.collection_def().end()) return;
  std::vector<std::string> missing;
  for (const std::string& name : unbound->second.bytes_list().value()) {
    if (!input_map.contains(name) && !input_map.contains(name + ":0")) missing.push_back(name);
  }
  if (!missing.empty()) {
    throw InvalidArgumentError(fmt::format(
        "Graph contains unbound inputs: {}. Must provide these inputs through input_map.", fmt::join(missing, ", ")));
  }
}

VariablesByName variables_in(const Graph& graph, const std::string& prefix) {
  VariablesByName variables;
  for (const VariableInfo& variable : graph.collection_of<VariableInfo>(collections::kGlobalVariables)) {
    const std::string name = variable.ref.name();
    if (name.starts_with(prefix)) variables[name.substr(prefix.size())] = variable;
  }
  return variables;
}

}  // namespace

ExportedMetaGraph export_scoped_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options) {
  return Exporter(graph, options).run();
}

proto::MetaGraphDef export_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options) {
  return export_scoped_meta_graph(graph, options).meta;
}

proto::MetaGraphDef to_meta_graph_def(const Graph& graph, const proto::SaverDef* saver_def) {
  ExportMetaGraphOptions options;
  if (saver_def != nullptr) options.saver_def = *saver_def;
  return export_meta_graph(graph, options);
}

ImportedMetaGraph import_scoped_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                           const ImportMetaGraphOptions& options) {
  check_unbound_inputs(meta, options.input_map);
  ImportedMetaGraph imported{
      .graph = import_graph_def(
          graph, meta.graph_def(),
          {.scope = options.import_scope, .input_map = options.input_map, .clear_devices = options.clear_devices})};
  import_collections(graph, meta, imported.graph.prefix);
  imported.variables = variables_in(graph, imported.graph.prefix);
  return imported;
}

VariablesByName copy_scoped_meta_graph(const Graph& from, const std::string& from_scope, Graph& to,
                                       const std::string& to_scope) {
  if (&from == &to && from_scope == to_scope) {
    throw InvalidArgumentError(
        fmt::format("'from_scope' and 'to_scope' need to be different when performing copy in the same graph, both are "
                    "'{}'",
                    from_scope));
  }
  return import_scoped_meta_graph(to, export_meta_graph(from, {.export_scope = from_scope}), {.import_scope = to_scope})
      .variables;
}

}  // namespace longhaul

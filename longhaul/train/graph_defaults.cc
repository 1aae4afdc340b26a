#include "longhaul/train/graph_defaults.h"

#include "longhaul/base/log.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/save_entry.h"

namespace longhaul {
namespace {

std::optional<CollectionItem> first_of(const Graph& graph, const std::string& key) {
  const std::vector<CollectionItem> items = graph.collection(key);
  if (items.empty()) return std::nullopt;
  if (items.size() > 1) log_info("Found {} {} operations. Returning the first one.", items.size(), key);
  return items.front();
}

Output as_output(const CollectionItem& item, const std::string& key) {
  if (const auto* output = std::get_if<Output>(&item)) return *output;
  if (const auto* variable = std::get_if<VariableInfo>(&item)) return variable->read;
  if (const auto* op = std::get_if<Operation>(&item); op != nullptr && op->num_outputs() > 0) return op->output();
  throw InvalidArgumentError("collection " + key + " must begin with a tensor");
}

OpList as_ops(const CollectionItem& item, const std::string& key) {
  if (const auto* op = std::get_if<Operation>(&item)) return *op;
  return as_output(item, key);
}

// `make` returns the default, invalid for none.
template <typename Make>
Output resolve_output(Graph& graph, const Setting<Output>& setting, const char* key, Make&& make) {
  if (setting.is_none()) return {};
  if (setting.has_value()) return setting.value();
  if (const auto item = first_of(graph, key)) return as_output(*item, key);
  const Output made = make();
  if (made.valid() && !graph.finalized()) graph.add_to_collection(key, made);
  return made;
}

template <typename Make>
OpList resolve_ops(Graph& graph, const Setting<OpList>& setting, const char* key, Make&& make) {
  if (setting.is_none()) return {};
  if (setting.has_value()) return setting.value();
  if (const auto item = first_of(graph, key)) return as_ops(*item, key);
  const Operation made = make();
  graph.add_to_collection(key, made);
  return made;
}

Output make_ready_op(const Scope& root) {
  std::vector<VariableInfo> variables = ops::global_variables(root.graph());
  for (const VariableInfo& variable : ops::local_variables(root.graph())) variables.push_back(variable);
  return ops::report_uninitialized_variables(root, variables);
}

Operation make_local_init_op(const Scope& root) {
  std::vector<Operation> initializers{ops::local_variables_initializer(root)};
  for (const Operation& op : root.graph().collection_of<Operation>(collections::kTableInitializers)) {
    initializers.push_back(op);
  }
  return ops::group(root, initializers);
}

std::shared_ptr<Saver> make_saver(Graph& graph, const SupervisorOptions& options) {
  SaverOptions saver_options{.graph = &graph, .files = options.files, .clock = options.clock};
  if (const auto item = first_of(graph, collections::kSavers)) {
    proto::SaverDef def;
    const auto* bytes = std::get_if<std::string>(&*item);
    if (bytes == nullptr || !def.ParseFromString(*bytes)) {
      throw InvalidArgumentError("collection savers must hold serialised SaverDefs");
    }
    saver_options.max_to_keep = def.max_to_keep();
    saver_options.keep_checkpoint_every_n_hours = static_cast<double>(def.keep_checkpoint_every_n_hours());
    return std::make_shared<Saver>(graph, def, saver_options);
  }
  if (everything_to_save(graph).empty()) return nullptr;
  auto saver = std::make_shared<Saver>(saver_options);
  graph.add_to_collection(collections::kSavers, saver->to_proto().SerializeAsString());
  return saver;
}

std::shared_ptr<Saver> resolve_saver(Graph& graph, const SupervisorOptions& options) {
  if (options.saver.is_none()) return nullptr;
  if (options.saver.has_value()) return options.saver.value().pointer();
  return make_saver(graph, options);
}

Output find_global_step(const Graph& graph) {
  const Output step = graph.find_output("global_step:0");
  if (!step.valid() || step.dtype() == kInt32 || step.dtype() == kInt64) return step;
  log_warning("Found 'global_step' is not an int type: {}", dtype_name(step.dtype()));
  return {};
}

}  // namespace

GraphDefaults resolve_defaults(Graph& graph, const SupervisorOptions& options) {
  const Scope root(graph);
  GraphDefaults defaults;
  defaults.ready_op =
      resolve_output(graph, options.ready_op, collections::kReadyOp, [&] { return make_ready_op(root); });
  defaults.ready_for_local_init_op = resolve_output(graph, options.ready_for_local_init_op,
                                                    collections::kReadyForLocalInitOp, [] { return Output(); });
  defaults.init_op = resolve_ops(graph, options.init_op, collections::kInitOp,
                                 [&] { return ops::global_variables_initializer(root); });
  defaults.local_init_op =
      resolve_ops(graph, options.local_init_op, collections::kLocalInitOp, [&] { return make_local_init_op(root); });
  defaults.saver = resolve_saver(graph, options);
  defaults.summary_op = resolve_output(graph, options.summary_op, collections::kSummaryOp,
                                       [&] { return summary::merge_all(root).value_or(Output()); });
  defaults.global_step =
      resolve_output(graph, options.global_step, collections::kGlobalStep, [&] { return find_global_step(graph); });
  return defaults;
}

std::string step_name(const Output& global_step) {
  const Operation op = global_step.op();
  const bool reads_variable = op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2";
  return reads_variable ? op.inputs()[0].op().name() : op.name();
}

}  // namespace longhaul

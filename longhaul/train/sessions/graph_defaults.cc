#include "longhaul/train/sessions/graph_defaults.h"

#include <fmt/format.h>

#include <functional>

#include "longhaul/base/log.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/saved_state/save_entry.h"

namespace longhaul {
namespace {

std::optional<CollectionItem> item_of(const Graph& graph, const std::string& key, Several several) {
  const std::vector<CollectionItem> items = graph.collection(key);
  if (items.empty()) return std::nullopt;
  if (items.size() > 1 && several == Several::kRefuse) {
    throw FailedPreconditionError(fmt::format(
        "More than one item in the graph's collection \"{}\", which has {}: pass the one to use", key, items.size()));
  }
  if (items.size() > 1) log_info("Found {} {} operations. Returning the first one.", items.size(), key);
  return items.front();
}

Output as_output(const CollectionItem& item, const std::string& key) {
  if (const auto* output = std::get_if<Output>(&item)) return *output;
  if (const auto* variable = std::get_if<VariableInfo>(&item)) return variable->read;
  if (const auto* op = std::get_if<Operation>(&item); op != nullptr && op->num_outputs() > 0) return op->output();
  const auto* op = std::get_if<Operation>(&item);
  throw InvalidArgumentError(fmt::format(
      "collection {} must begin with a tensor, but begins with {}: put the tensor first, or pass it as an option", key,
      op != nullptr ? fmt::format("operation {} ({}), which has no output", op->name(), op->type())
                    : "an item that is neither a tensor nor an operation"));
}

OpList as_ops(const CollectionItem& item, const std::string& key) {
  if (const auto* op = std::get_if<Operation>(&item)) return *op;
  return as_output(item, key);
}

// Fills in the settings of one graph.
class Resolver {
 public:
  Resolver(Graph& graph, const DefaultRules& rules) : graph_(graph), root_(graph), rules_(rules) {}

  // `make` returns the default, invalid for none.
  Output output(const Defaulted<Output>& setting, const char* key, const std::function<Output()>& make) const {
    if (setting.is_none()) return {};
    if (setting.has_value()) return setting.value();
    if (const auto item = item_of(graph_, key, rules_.several)) return as_output(*item, key);
    const Output made = make();
    if (made.valid() && !graph_.finalized()) graph_.add_to_collection(key, made);
    return made;
  }

  OpList ops(const Defaulted<OpList>& setting, const char* key, const std::function<Operation()>& make) const {
    if (setting.is_none()) return {};
    if (setting.has_value()) return setting.value();
    if (const auto item = item_of(graph_, key, rules_.several)) return as_ops(*item, key);
    const Operation made = make();
    graph_.add_to_collection(key, made);
    return made;
  }

  std::shared_ptr<Saver> saver(const Defaulted<MaybeOwned<Saver>>& setting) const {
    if (setting.is_none()) return nullptr;
    if (setting.has_value()) return setting.value().pointer();
    if (auto found = find_saver(graph_, rules_.several, rules_.saver)) return found;
    const bool is_empty = everything_to_save(graph_).empty();
    if (is_empty && !rules_.saver.allow_empty) return nullptr;
    SaverOptions options = rules_.saver;
    options.graph = &graph_;
    auto made = std::make_shared<Saver>(options);
    if (!is_empty) graph_.add_to_collection(collections::kSavers, made->to_proto().SerializeAsString());
    return made;
  }

  Output make_ready_op() const {
    std::vector<VariableInfo> variables = ops::global_variables(graph_);
    for (const VariableInfo& variable : ops::local_variables(graph_)) variables.push_back(variable);
    return ops::report_uninitialized_variables(root_, variables);
  }

  Output make_ready_for_local_init_op() const {
    if (!rules_.waits_for_globals) return {};
    return ops::report_uninitialized_variables(root_, ops::global_variables(graph_));
  }

  Operation make_init_op() const { return ops::global_variables_initializer(root_); }

  Operation make_local_init_op() const {
    std::vector<Operation> initializers{ops::local_variables_initializer(root_)};
    for (const Operation& op : graph_.collection_of<Operation>(collections::kTableInitializers)) {
      initializers.push_back(op);
    }
    return ops::group(root_, initializers);
  }

  Output make_summary_op() const { return summary::merge_all(root_).value_or(Output()); }

 private:
  Graph& graph_;
  const Scope root_;
  const DefaultRules& rules_;
};

Output find_global_step(const Graph& graph) {
  const Output step = graph.find_output("global_step:0");
  if (!step.valid() || step.dtype() == kInt32 || step.dtype() == kInt64) return step;
  log_warning("Found 'global_step' is not an int type: {}", dtype_name(step.dtype()));
  return {};
}

}  // namespace

GraphDefaults resolve_defaults(Graph& graph, const GraphSettings& settings, const DefaultRules& rules) {
  const Resolver resolver(graph, rules);
  return {
      .ready_op = resolver.output(settings.ready_op, collections::kReadyOp, [&] { return resolver.make_ready_op(); }),
      .ready_for_local_init_op = resolver.output(settings.ready_for_local_init_op, collections::kReadyForLocalInitOp,
                                                 [&] { return resolver.make_ready_for_local_init_op(); }),
      .init_op = resolver.ops(settings.init_op, collections::kInitOp, [&] { return resolver.make_init_op(); }),
      .local_init_op = resolver.ops(settings.local_init_op, collections::kLocalInitOp,
                                    [&] { return resolver.make_local_init_op(); }),
      .saver = resolver.saver(settings.saver),
      .summary_op =
          resolver.output(settings.summary_op, collections::kSummaryOp, [&] { return resolver.make_summary_op(); }),
      .global_step =
          resolver.output(settings.global_step, collections::kGlobalStep, [&] { return find_global_step(graph); })};
}

std::shared_ptr<Saver> find_saver(Graph& graph, Several several, const SaverOptions& options) {
  const auto item = item_of(graph, collections::kSavers, several);
  if (!item) return nullptr;
  proto::SaverDef def;
  const auto* bytes = std::get_if<std::string>(&*item);
  if (bytes == nullptr || !def.ParseFromString(*bytes)) {
    throw InvalidArgumentError("the items of collection savers must be serialised SaverDefs");
  }
  return std::make_shared<Saver>(graph, def, options);
}

}  // namespace longhaul

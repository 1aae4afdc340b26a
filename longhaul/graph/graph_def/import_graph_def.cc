#include "longhaul/graph/graph_def/import_graph_def.h"

#include <fmt/format.h>

#include <set>

#include "longhaul/base/excerpt.h"
#include "longhaul/graph/graph_def/attr_value.h"
#include "longhaul/graph/graph_def/import_check.h"
#include "longhaul/graph/graph_def/import_order.h"
#include "longhaul/graph/graph_def/lent_functions.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

constexpr std::string_view kColocation = "loc:@";

std::string tensor_name(const NodeInput& input) {
  return fmt::format("{}:{}", input.node, input.index);
}

class Importer {
 public:
  Importer(Graph& graph, const proto::GraphDef& graph_def, const ImportOptions& options)
      : graph_(graph), graph_def_(graph_def), options_(options) {}

  ImportedGraph import() {
    if (graph_.finalized()) throw FailedPreconditionError("Graph is finalized and cannot be modified.");
    check_version(graph_def_);
    check_node_count(graph_def_, options_.most_nodes);
    check_supported(graph_def_, options_.is_part);
    if (!options_.is_part) check_no_transfers(graph_def_);
    check_constants(graph_def_, options_.most_constant_bytes);
    numbers_ = number_nodes(graph_def_);
    take_replacements();
    const std::vector<int> order = order_nodes(graph_def_, find_needs());
    check_used_replacements();
    check_returned();
    choose_prefix();
    result_.operations.resize(static_cast<size_t>(graph_def_.node_size()));
    for (int node : order) add(node);
    if (options_.takes_scopes) take_scope_names();
    find_returned();
    return std::move(result_);
  }

 private:
  struct Replacement {
    Output output;
    bool used = false;
  };

  [[noreturn]] static void refuse(const proto::NodeDef& node, const std::string& why) {
    throw InvalidArgumentError(
        fmt::format("node {} ({}): {}", excerpt(node.name()), excerpt(node.op()), excerpt(why, 2000)));
  }

  void take_replacements() {
    for (const auto& [name, output] : options_.input_map) {
      const auto input = parse_node_input(name);
      if (!input) throw InvalidArgumentError(fmt::format("input_map: '{}' is not the name of a tensor", name));
      if (!output.valid() || &output.graph() != &graph_) {
        throw InvalidArgumentError(fmt::format("input_map: '{}' is not mapped to a tensor of this graph", name));
      }
      replacements_[input->control ? name : tensor_name(*input)] = {output};
    }
  }

  Replacement* find_replacement(const NodeInput& input, const std::string& text) {
    if (replacements_.empty()) return nullptr;
    const auto it = replacements_.find(input.control ? text : tensor_name(input));
    return it == replacements_.end() ? nullptr : &it->second;
  }

  // The nodes that each node needs. Checks all inputs on the way.
  std::vector<std::vector<int>> find_needs() {
    std::vector<std::vector<int>> needs(static_cast<size_t>(graph_def_.node_size()));
    for (size_t i = 0; i < needs.size(); ++i) {
      const proto::NodeDef& node = graph_def_.node(static_cast<int>(i));
      bool control_before = false;
      for (const std::string& text : node.input()) {
        const auto input = parse_node_input(text);
        if (!input) refuse(node, fmt::format("'{}' is not the name of an input", excerpt(text)));
        if (control_before && !input->control)
          refuse(node, fmt::format("'{}' comes after a control input", excerpt(text)));
        control_before = input->control;
        if (const auto needed = find_needed(node, *input, text)) needs[i].push_back(*needed);
      }
    }
    return needs;
  }

  std::optional<int> find_needed(const proto::NodeDef& node, const NodeInput& input, const std::string& text) {
    if (Replacement* replacement = find_replacement(input, text)) {
      replacement->used = true;
      return std::nullopt;
    }
    const auto it = numbers_.find(input.node);
    if (it == numbers_.end()) refuse(node, fmt::format("the input '{}' is not in the graph", excerpt(text)));
    return it->second;
  }

  void check_used_replacements() const {
    std::vector<std::string> unused;
    for (const auto& [name, replacement] : replacements_) {
      if (!replacement.used) unused.push_back(name);
    }
    if (!unused.empty()) {
      throw InvalidArgumentError(
          fmt::format("Attempted to map inputs that were not found in graph_def: [{}]", fmt::join(unused, ", ")));
    }
  }

  void check_returned() const {
    for (const std::string& name : options_.return_elements) {
      const auto input = parse_node_input(name);
      if (!input || input->control || !numbers_.contains(input->node)) {
        throw InvalidArgumentError(fmt::format("Requested return_element '{}' not found in graph_def.", name));
      }
    }
  }

  void choose_prefix() {
    if (options_.scope.ends_with('/')) {
      result_.prefix = options_.scope;
    } else if (!options_.scope.empty()) {
      result_.prefix = graph_.unique_name(options_.scope) + "/";
    }
    for (const auto& node : graph_def_.node()) {
      if (graph_.name_taken(result_.prefix + node.name())) {
        throw InvalidArgumentError(fmt::format("the name '{}' already exists in the graph; import with a scope",
                                               excerpt(result_.prefix + node.name())));
      }
    }
  }

  void add(int number) {
    const proto::NodeDef& node = graph_def_.node(number);
    OperationSpec spec{.type = node.op(), .name = result_.prefix + node.name()};
    if (!options_.clear_devices) spec.device = node.device();
    for (const std::string& text : node.input()) {
      const NodeInput input = *parse_node_input(text);
      const Output source = find_source(node, input, text);
      if (input.control) {
        spec.control_inputs.push_back(source.op());
      } else {
        spec.inputs.push_back(source);
      }
    }
    for (const auto& [name, attr] : node.attr()) add_attr(node, name, attr, &spec.attrs);
    if (const auto constant = options_.constants.find(node.name()); constant != options_.constants.end()) {
      spec.attrs.emplace("value", constant->second);
    }
    result_.operations[static_cast<size_t>(number)] = graph_.add_operation(std::move(spec));
  }

  Output find_source(const proto::NodeDef& node, const NodeInput& input, const std::string& text) {
    if (const Replacement* replacement = find_replacement(input, text)) return replacement->output;
    const Operation op = result_.operations[static_cast<size_t>(numbers_.at(input.node))];
    if (!input.control && input.index >= op.num_outputs()) {
      refuse(node, fmt::format("the input '{}' does not exist: {} ({}) has {} outputs", text, input.node, op.type(),
                               op.num_outputs()));
    }
    return Output(op, input.index);
  }

  void add_attr(const proto::NodeDef& node, const std::string& name, const proto::AttrValue& value,
                Attrs* attrs) const {
    if (name == "_output_shapes") return;
    try {
      Attr attr = options_.is_part && value.value_case() == proto::AttrValue::kPlaceholder
                      ? function_of(value.placeholder())
                      : attr_from_proto(name, value);
      if (name == "_class") add_prefix_to_colocations(&attr);
      attrs->emplace(name, std::move(attr));
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("node {} ({}): attr {}: {}", node.name(), node.op(), name, error.what()));
    }
  }

  static Attr function_of(const std::string& ticket) {
    auto function = find_lent_function(ticket);
    if (!function) throw UnimplementedError("the program has no such function (any more)");
    return function;
  }

  void add_prefix_to_colocations(Attr* attr) const {
    auto* places = std::get_if<std::vector<std::string>>(attr);
    if (places == nullptr) return;
    for (std::string& place : *places) {
      if (place.starts_with(kColocation)) place.insert(kColocation.size(), result_.prefix);
    }
  }

  // As if the scopes had been entered here, so that a later one of the same name gets a suffix.
  void take_scope_names() {
    std::set<std::string> scopes;
    for (const auto& node : graph_def_.node()) {
      const std::string& name = node.name();
      for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
        scopes.insert(result_.prefix + name.substr(0, slash));
      }
    }
    for (const std::string& scope : scopes) {
      if (!graph_.name_taken(scope)) graph_.unique_name(scope);
    }
  }

  void find_returned() {
    for (const std::string& name : options_.return_elements) {
      const NodeInput element = *parse_node_input(name);
      const Operation op = result_.operations[static_cast<size_t>(numbers_.at(element.node))];
      if (name.find(':') == std::string::npos) {
        result_.returned.emplace_back(op);
      } else {
        result_.returned.emplace_back(op.output(element.index));
      }
    }
  }

  Graph& graph_;
  const proto::GraphDef& graph_def_;
  const ImportOptions& options_;
  std::unordered_map<std::string_view, int> numbers_;
  std::map<std::string, Replacement> replacements_;
  ImportedGraph result_;
};

}  // namespace

ImportedGraph import_graph_def(Graph& graph, const proto::GraphDef& graph_def, const ImportOptions& options) {
  return Importer(graph, graph_def, options).import();
}

}  // namespace longhaul

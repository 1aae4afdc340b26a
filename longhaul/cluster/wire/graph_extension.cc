#include "longhaul/cluster/wire/graph_extension.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

bool is_letter_digit_or_dot(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
}

// As TensorFlow has it for graphs from outside.
bool is_legal_name(std::string_view name) {
  const auto may_follow = [](char c) {
    return is_letter_digit_or_dot(c) || c == '_' || c == '-' || c == '/' || c == '\\';
  };
  return !name.empty() && is_letter_digit_or_dot(name[0]) && std::all_of(name.begin(), name.end(), may_follow);
}

bool is_legal_input(std::string_view text) {
  const auto input = parse_node_input(text);
  if (!input || !is_legal_name(input->node)) return false;
  const size_t colon = text.rfind(':');
  const bool has_leading_zero = colon != std::string_view::npos && text.size() > colon + 2 && text[colon + 1] == '0';
  return !has_leading_zero;
}

void check_names(const Graph& graph, const proto::GraphDef& nodes) {
  for (const proto::NodeDef& node : nodes.node()) {
    if (!is_legal_name(node.name()))
      throw InvalidArgumentError(fmt::format("Illegal op name '{}'", excerpt(node.name())));
    for (const std::string& input : node.input()) {
      if (!is_legal_input(input))
        throw InvalidArgumentError(
            fmt::format("Illegal op input name '{}', of node {}", excerpt(input), excerpt(node.name())));
    }
    if (graph.find_operation(node.name()))
      throw InvalidArgumentError(fmt::format(
          "GraphDef argument to Extend includes node '{}', which was created by a previous call to Create or Extend in "
          "this session.",
          excerpt(node.name())));
  }
}

// The nodes' inputs that are in the graph, as import_graph_def() takes them.
std::map<std::string, Output> inputs_in(const Graph& graph, const proto::GraphDef& nodes) {
  std::map<std::string, Output> inputs;
  for (const proto::NodeDef& node : nodes.node()) {
    for (const std::string& text : node.input()) {
      const NodeInput input = *parse_node_input(text);
      const Operation op = graph.find_operation(input.node);
      if (!op) continue;
      if (!input.control && input.index >= op.num_outputs())
        throw InvalidArgumentError(fmt::format("node {} ({}): the input '{}' does not exist: {} ({}) has {} outputs",
                                               node.name(), excerpt(node.op()), text, op.name(), op.type(),
                                               op.num_outputs()));
      inputs.emplace(text, Output(op, input.index));
    }
  }
  return inputs;
}

// Nobody adds operations by scopes here, so a scope's name may be that of a later node.
void add_nodes(Graph& graph, const proto::GraphDef& nodes) {
  import_graph_def(graph, nodes, {.input_map = inputs_in(graph, nodes), .takes_scopes = false});
}

// Another graph with the same operations, which shares the constants' memory.
void copy_operations(const Graph& graph, Graph& copy) {
  std::vector<Operation> copies;  // by number
  const auto copy_of = [&](const Operation& op) { return copies[static_cast<size_t>(op.id())]; };
  for (const Operation& op : graph.operations()) {
    OperationSpec spec{.type = op.type(), .name = op.name(), .attrs = op.attrs(), .device = op.device()};
    for (const Output& input : op.inputs()) spec.inputs.push_back(copy_of(input.op()).output(input.index()));
    for (const Operation& control : op.control_inputs()) spec.control_inputs.push_back(copy_of(control));
    copies.push_back(copy.add_operation(std::move(spec)));
  }
}

}  // namespace

// What an import refuses late leaves the nodes before it, and a graph only grows: so it is tried on a copy first.
void extend_graph(Graph& graph, const proto::GraphDef& nodes) {
  check_names(graph, nodes);
  Graph trial;
  copy_operations(graph, trial);
  add_nodes(trial, nodes);
  add_nodes(graph, nodes);
}

void start_graph(Graph& graph, const proto::GraphDef& nodes) {
  check_names(graph, nodes);
  add_nodes(graph, nodes);
}

}  // namespace longhaul

#include "longhaul/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/excerpt.h"
#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/missing_name.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

bool valid_name(std::string_view name) {
  const auto letter_or_digit = [](unsigned char c) { return std::isalnum(c) || c == '.'; };
  if (name.empty() || (!letter_or_digit(static_cast<unsigned char>(name[0])) && name[0] != '_')) return false;
  return std::all_of(name.begin(), name.end(), [&](unsigned char c) {
    return letter_or_digit(c) || c == '_' || c == '-' || c == '/' || c == '\\' || c == '>';
  });
}

void check_spec(const Graph* graph, const OperationSpec& spec) {
  if (!valid_name(spec.name))
    throw InvalidArgumentError(fmt::format("'{}' is not a valid operation name", excerpt(spec.name)));
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].valid() || &spec.inputs[i].graph() != graph) {
      throw InvalidArgumentError(
          fmt::format("input {} of {} ({}) is not a tensor of this graph", i, spec.name, spec.type));
    }
  }
  for (const Operation& control : spec.control_inputs) {
    if (!control.valid() || &control.graph() != graph) {
      throw InvalidArgumentError(fmt::format("a control input of {} is not an operation of this graph", spec.name));
    }
  }
  DeviceSpec::parse(spec.device);
}

// The graphs that there are: by them an option is told that was forgotten. They may go at the very end of the program,
// so this stays.
struct AllGraphs {
  Mutex mutex;
  std::set<const Graph*> graphs GUARDED_BY(mutex);

  static AllGraphs& get() {
    static auto* all = new AllGraphs;
    return *all;
  }

  int most_operations() {
    MutexLock lock(mutex);
    int most = 0;
    for (const Graph* graph : graphs) most = std::max(most, graph->num_operations());
    return most;
  }
};

// Handles go only where a resource is taken.
void check_handles(const OperationSpec& spec, const OpInfo& info) {
  for (size_t i = static_cast<size_t>(info.ref_inputs); i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].dtype() == kResource) {
      throw InvalidArgumentError(fmt::format("{} ({}): input {} must be a tensor, but {} is a handle of a {}",
                                             spec.name, spec.type, i, spec.inputs[i].name(),
                                             spec.inputs[i].op().type()));
    }
  }
}

void follow_references(const OpInfo& info, OperationSpec* spec) {
  if (!spec->follows_references || info.ref_inputs == 0) return;
  const auto first = spec->inputs.begin(), end = first + info.ref_inputs;
  const std::string& device = first->op().device();
  const bool share_one = std::all_of(first, end, [&](const Output& taken) { return taken.op().device() == device; });
  if (share_one) spec->device = device;
}

}  // namespace

const std::string& Operation::name() const {
  return node_->name;
}
const std::string& Operation::type() const {
  return node_->type;
}
const std::string& Operation::device() const {
  return node_->device;
}
Graph& Operation::graph() const {
  return *node_->graph;
}
int Operation::id() const {
  return node_->id;
}
uint32_t Operation::traits() const {
  return node_->info.traits;
}
int Operation::ref_inputs() const {
  return node_->info.ref_inputs;
}
const std::vector<Output>& Operation::inputs() const {
  return node_->inputs;
}
const std::vector<Operation>& Operation::control_inputs() const {
  return node_->control_inputs;
}
int Operation::num_outputs() const {
  return static_cast<int>(node_->info.outputs.size());
}
const Attrs& Operation::attrs() const {
  return node_->attrs;
}

Output Operation::output(int index) const {
  if (index < 0 || index >= num_outputs()) {
    throw InvalidArgumentError(
        fmt::format("operation {} ({}) has {} outputs, but no output {}", name(), type(), num_outputs(), index));
  }
  return Output(*this, index);
}

std::string Output::name() const {
  return fmt::format("{}:{}", op_.name(), index_);
}
DType Output::dtype() const {
  return op_.node()->info.outputs[static_cast<size_t>(index_)].dtype;
}
const Shape& Output::shape() const {
  return op_.node()->info.outputs[static_cast<size_t>(index_)].shape;
}

Graph::Graph() {
  AllGraphs& all = AllGraphs::get();
  MutexLock lock(all.mutex);
  all.graphs.insert(this);
}

Graph::~Graph() {
  AllGraphs& all = AllGraphs::get();
  MutexLock lock(all.mutex);
  all.graphs.erase(this);
}

Graph& Graph::default_graph() {
  static Graph* graph = new Graph;
  return *graph;
}

Graph& Graph::or_default(Graph* graph, std::string_view option) {
  if (graph != nullptr) return *graph;
  Graph& chosen = default_graph();
  if (chosen.num_operations() > 0) return chosen;
  if (const int most = AllGraphs::get().most_operations(); most > 0) {
    throw InvalidArgumentError(fmt::format(
        "{} was not set, so it is the default graph, but that is empty, and the program has another graph with {} "
        "operations. Pass a pointer to that graph, or to Graph::default_graph() if the empty one is intended",
        option, most));
  }
  return chosen;
}

Operation Graph::add_operation(OperationSpec spec) {
  if (finalized()) {
    throw FailedPreconditionError(fmt::format(
        "Graph is finalized and cannot be modified. {} '{}' cannot be added because a Supervisor or a session already "
        "uses the graph. Add operations, summaries, savers and torch_training() before that",
        spec.type, spec.name));
  }
  check_spec(this, spec);
  OpInfo info = resolve_operation(spec);
  check_handles(spec, info);
  follow_references(info, &spec);
  MutexLock lock(mutex_);
  auto node = std::make_unique<Node>();
  node->graph = this;
  node->id = static_cast<int>(nodes_.size());
  node->name = unique_name_locked(spec.name);
  node->type = std::move(spec.type);
  node->device = std::move(spec.device);
  node->inputs = std::move(spec.inputs);
  node->control_inputs = std::move(spec.control_inputs);
  node->attrs = std::move(spec.attrs);
  node->info = std::move(info);
  by_name_[node->name] = node.get();
  nodes_.push_back(std::move(node));
  return Operation(nodes_.back().get());
}

std::string Graph::unique_name(std::string_view name) {
  MutexLock lock(mutex_);
  return unique_name_locked(name);
}

std::string Graph::unique_name_locked(std::string_view name) {
  const auto [it, fresh] = names_.try_emplace(std::string(name), 1);
  if (fresh) return it->first;
  std::string candidate;
  do {
    candidate = fmt::format("{}_{}", name, it->second++);
  } while (names_.contains(candidate));
  names_.emplace(candidate, 1);
  return candidate;
}

bool Graph::name_taken(std::string_view name) const {
  MutexLock lock(mutex_);
  return names_.contains(name);
}

Operation Graph::find_operation(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? Operation() : Operation(it->second);
}

Operation Graph::operation(std::string_view name) const {
  const Operation found = find_operation(name);
  if (!found) throw NotFoundError(missing_operation_text(*this, name));
  return found;
}

Output Graph::find_output(std::string_view name) const {
  const auto parts = parse_node_input(name);
  if (!parts || parts->control || name.find(':') == std::string_view::npos) return Output();
  const Operation op = find_operation(parts->node);
  return op && parts->index < op.num_outputs() ? Output(op, parts->index) : Output();
}

Output Graph::output(std::string_view name) const {
  const Output found = find_output(name);
  if (!found.valid()) throw NotFoundError(missing_tensor_text(*this, name));
  return found;
}

std::vector<Operation> Graph::operations() const {
  MutexLock lock(mutex_);
  std::vector<Operation> all;
  for (const auto& node : nodes_) all.emplace_back(node.get());
  return all;
}

int Graph::num_operations() const {
  MutexLock lock(mutex_);
  return static_cast<int>(nodes_.size());
}

void Graph::add_to_collection(const std::string& key, CollectionItem item) {
  MutexLock lock(mutex_);
  if (finalized_) throw FailedPreconditionError("Graph is finalized and cannot be modified.");
  collections_[key].push_back(std::move(item));
}

void Graph::replace_variable(const VariableInfo& changed) {
  MutexLock lock(mutex_);
  if (finalized_) throw FailedPreconditionError("Graph is finalized and cannot be modified.");
  for (auto& [key, items] : collections_) {
    for (CollectionItem& item : items) {
      auto* variable = std::get_if<VariableInfo>(&item);
      if (variable != nullptr && variable->ref == changed.ref) *variable = changed;
    }
  }
}

std::vector<CollectionItem> Graph::collection(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto it = collections_.find(key);
  return it == collections_.end() ? std::vector<CollectionItem>() : it->second;
}

std::vector<std::string> Graph::collection_keys() const {
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, items] : collections_) keys.push_back(key);
  return keys;
}

void Graph::finalize() {
  MutexLock lock(mutex_);
  finalized_ = true;
}

void Graph::unfinalize() {
  MutexLock lock(mutex_);
  finalized_ = false;
}

bool Graph::finalized() const {
  MutexLock lock(mutex_);
  return finalized_;
}

void Graph::set_seed(uint64_t seed) {
  MutexLock lock(mutex_);
  seed_ = seed;
}

uint64_t Graph::seed() const {
  MutexLock lock(mutex_);
  return seed_;
}

}  // namespace longhaul

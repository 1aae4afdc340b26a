#include "longhaul/placement/part_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/graph/graph_def/attr_value.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/lent_functions.h"
#include "longhaul/placement/colocation_groups.h"

namespace longhaul {
namespace {

std::string name_of(const std::string& node, int output) {
  return output == 0 ? node : fmt::format("{}:{}", node, output);
}

bool is_large(const Operation& constant) {
  const Tensor* value = constant.find_attr<Tensor>("value");
  return value != nullptr && value->dtype() != kString && value->size_bytes() > kLargestInnerConstant;
}

// Of a report on variables of several tasks.
bool is_divided(const Operation& op, const SharedOrder& order) {
  return may_be_divided(op) && std::any_of(op.inputs().begin(), op.inputs().end(), [&](const Output& variable) {
           return order.task_of(variable.op()) != order.task_of(op);
         });
}

proto::NodeDef join_of(const Operation& report) {
  std::vector<std::string> names;
  for (const Output& variable : report.inputs()) names.push_back(variable.op().name());
  proto::NodeDef node;
  node.set_name(report.name());
  node.set_op("_JoinReports");
  (*node.mutable_attr())["names"] = attr_to_proto(names);
  return node;
}

proto::NodeDef transfer_node(const Transfer& transfer, const std::string& type, const std::string& name,
                             const std::string& peer) {
  proto::NodeDef node;
  node.set_name(name);
  node.set_op(transfer.has_value() ? type : type + "Control");
  auto& attrs = *node.mutable_attr();
  attrs["peer"] = attr_to_proto(peer);
  attrs["bundle"] = attr_to_proto(static_cast<int64_t>(transfer.bundle));
  if (!transfer.has_value()) return node;
  attrs["slot"] = attr_to_proto(static_cast<int64_t>(transfer.slot));
  attrs["T"] = attr_to_proto(transfer.value.dtype());
  return node;
}

void note_message(const RunSplit& split, const Transfer& transfer, const std::string& peer,
                  std::vector<RunPart::Message>* messages) {
  const RunPart::Message message{
      .bundle = transfer.bundle, .peer = peer, .values = split.bundles[static_cast<size_t>(transfer.bundle)].values};
  if (std::find(messages->begin(), messages->end(), message) == messages->end()) messages->push_back(message);
}

class PartBuilder {
 public:
  PartBuilder(const Session::Request& request, const SharedOrder& order, const RunSplit& split,
              const Placement& placement, int task)
      : request_(request), order_(order), split_(split), placement_(placement), task_(task) {
    part_.task = split.tasks[static_cast<size_t>(task)];
  }

  RunPart build() && {
    for (const PartStep& step : split_.parts[static_cast<size_t>(task_)]) add(step);
    add_fetches();
    add_streams();
    for (const std::string& name : run_) {
      if (!used_.contains(name)) part_.targets.push_back(name);
    }
    part_.graph.mutable_versions()->set_producer(kGraphVersion);
    return std::move(part_);
  }

 private:
  using Value = std::tuple<const Node*, int, bool>;  // operation, output, after the run's writes

  void add(const PartStep& step) {
    if (step.kind == PartStep::kRun) return add_operation(step.op);
    const Transfer& transfer = split_.transfers[static_cast<size_t>(step.transfer)];
    if (step.kind == PartStep::kSend) {
      add_send(transfer, step.transfer);
    } else {
      add_receive(transfer, step.transfer);
    }
  }

  // The node is run, and what it takes comes before it.
  void add_run(proto::NodeDef node, bool after_write) {
    (*node.mutable_attr())[kAfterWriteAttr] = attr_to_proto(after_write);
    for (const std::string& input : node.input()) {
      used_.insert(input.starts_with('^') ? input.substr(1) : input.substr(0, input.find(':')));
    }
    run_.push_back(node.name());
    names_.insert(node.name());
    *part_.graph.add_node() = std::move(node);
  }

  // What a divided report says of this task's variables.
  std::string add_report(const Operation& report, bool after_write) {
    proto::NodeDef node;
    node.set_name(fmt::format("{}/_part_{}", report.name(), task_));
    node.set_op(report.type());
    for (const Output& variable : report.inputs()) {
      if (order_.task_of(variable.op()) != task_) continue;
      node.add_input(standing(variable.op()));
      node.set_device(placement_.device_of(variable.op()).to_string());
    }
    std::string name = node.name();
    add_run(std::move(node), after_write);
    return name;
  }

  // What all tasks say, this one too if it has some of the variables.
  void add_joined_report(const Operation& report) {
    proto::NodeDef node = join_of(report);
    node.set_device(placement_.device_of(report).to_string());
    bool has_own = false;
    for (const Output& variable : report.inputs()) {
      has_own = has_own || order_.task_of(variable.op()) == task_;
      for (const bool late : {false, true}) {
        const auto part = received_.find({variable.op().node(), key_of_report(report), late});
        if (part != received_.end()) node.add_input(part->second);
      }
    }
    if (has_own) node.add_input(add_report(report, order_.after_write(report)));
    add_run(std::move(node), order_.after_write(report));
  }

  void add_operation(const Operation& op) {
    if (is_divided(op, order_)) return add_joined_report(op);
    const bool large = is_large(op);
    proto::NodeDef node = to_node_def(op, large ? "value" : "");
    if (large) part_.constants.emplace_back(op.name(), op.attr<Tensor>("value"));
    if (op.type() == "HostFunction") {
      const auto& function = op.attr<std::shared_ptr<HostFunction>>("function");
      (*node.mutable_attr())["function"].set_placeholder(lend_function(function));
    }
    node.clear_input();
    node.set_device(placement_.device_of(op).to_string());
    for (size_t i = 0; i < op.inputs().size(); ++i) {
      const bool is_ref = static_cast<int>(i) < op.ref_inputs();
      node.add_input(is_ref ? standing(op.inputs()[i].op()) : input_name(op.inputs()[i], op));
    }
    for (const Operation& control : op.control_inputs()) {
      if (names_.contains(control.name()) && !stands_for_value(control)) node.add_input("^" + control.name());
    }
    if (writes_variable(op)) part_.writes = true;
    if (op.type() == "RandomState" || op.type() == "RestoreRandomState") beside_.push_back(colocated_operation(op));
    add_run(std::move(node), order_.after_write(op));
  }

  std::string input_name(const Output& input, const Operation& user) {
    if (order_.is_fed(input)) return fed(input);
    const Operation source = input.op();
    const bool here = order_.task_of(source) == task_;
    if (stands_for_value(source) && (here || source.type() != "VariableV2")) return standing(source);
    if (here) return name_of(source.name(), input.index());
    const bool late = stands_for_value(source) ? order_.reads_late(user, source)
                                               : order_.after_write(source) || writes_variable(source);
    return received_.at({source.node(), input.index(), late});
  }

  // A variable, a resource, a constant: added when it is first used.
  std::string standing(const Operation& op) {
    if (!names_.insert(op.name()).second) return op.name();
    const bool large = is_large(op);
    proto::NodeDef node = to_node_def(op, large ? "value" : "");
    if (large) part_.constants.emplace_back(op.name(), op.attr<Tensor>("value"));
    node.clear_input();
    node.set_device(order_.task_of(op) == task_ && placement_.has(op) ? placement_.device_of(op).to_string() : "");
    *part_.graph.add_node() = std::move(node);
    return op.name();
  }

  // A placeholder of the operation's own name, unless that also runs.
  std::string fed(const Output& output) {
    const auto [place, fresh] = fed_.try_emplace(output);
    if (!fresh) return place->second;
    const std::string& name = output.op().name();
    place->second = output.op().type() == "Placeholder" ? name : fmt::format("{}/_fed_{}", name, output.index());
    proto::NodeDef node;
    node.set_name(place->second);
    node.set_op("Placeholder");
    (*node.mutable_attr())["dtype"] = attr_to_proto(output.dtype());
    (*node.mutable_attr())["shape"] = attr_to_proto(output.shape());
    names_.insert(node.name());
    *part_.graph.add_node() = std::move(node);
    for (size_t i = 0; i < request_.feeds.size(); ++i) {
      if (request_.feeds[i] == output) part_.feeds.push_back({static_cast<int>(i), place->second + ":0"});
    }
    return place->second;
  }

  void add_send(const Transfer& transfer, int number) {
    const std::string name = fmt::format("{}/_send_{}", transfer.after.name(), number);
    const std::string& peer = split_.tasks[static_cast<size_t>(transfer.to)];
    proto::NodeDef node = transfer_node(transfer, "_Send", name, peer);
    if (transfer.report) {
      node.add_input(add_report(transfer.report, transfer.after_write));
    } else if (transfer.has_value()) {
      const bool stands = stands_for_value(transfer.after);
      node.add_input(stands ? standing(transfer.after) : name_of(transfer.after.name(), transfer.value.index()));
    }
    note_message(split_, transfer, peer, &part_.sends);
    add_run(std::move(node), transfer.after_write);
  }

  void add_receive(const Transfer& transfer, int number) {
    const std::string name = fmt::format("{}/_recv_{}", transfer.after.name(), number);
    const std::string& peer = split_.tasks[static_cast<size_t>(transfer.from)];
    proto::NodeDef node = transfer_node(transfer, "_Recv", name, peer);
    if (transfer.has_value()) {
      (*node.mutable_attr())["shape"] = attr_to_proto(transfer.value.shape());
      const int output = transfer.report ? key_of_report(transfer.report) : transfer.value.index();
      received_[{transfer.after.node(), output, transfer.after_write}] = name;
    }
    note_message(split_, transfer, peer, &part_.receives);
    add_run(std::move(node), transfer.after_write);
  }

  void add_fetches() {
    for (size_t i = 0; i < request_.fetches.size(); ++i) {
      const Fetch::Target& fetch = request_.fetches[i];
      if (fetch.is_operation() || order_.is_fed(fetch.output()) || order_.task_of(fetch.op) != task_) continue;
      const std::string name = stands_for_value(fetch.op) ? standing(fetch.op) : fetch.op.name();
      part_.fetches.push_back({static_cast<int>(i), fmt::format("{}:{}", name, fetch.index)});
    }
  }

  // The state of a random stream is that of an operation which may not be part of the run: it is found by its name.
  void add_streams() {
    for (const Operation& op : beside_) {
      if (!names_.insert(op.name()).second) continue;
      proto::NodeDef* node = part_.graph.add_node();
      node->set_name(op.name());
      node->set_op("NoOp");
      for (const char* seed : {"seed", "seed2"}) {
        if (const auto attr = op.attrs().find(seed); attr != op.attrs().end())
          (*node->mutable_attr())[seed] = attr_to_proto(attr->second);
      }
    }
  }

  const Session::Request& request_;
  const SharedOrder& order_;
  const RunSplit& split_;
  const Placement& placement_;
  const int task_;
  RunPart part_;
  std::set<std::string> names_, used_;  // of nodes; of those that others take
  std::vector<std::string> run_;        // nodes that are run, in order
  std::map<Value, std::string> received_;
  std::unordered_map<Output, std::string, OutputHash> fed_;
  std::vector<Operation> beside_;
};

bool has_work(const RunPart& part) {
  return !part.targets.empty() || !part.fetches.empty();
}

}  // namespace

DividedRun divide_run(const Session::Request& request, const RunOrder& run, const Placement& placement) {
  const SharedOrder order(run, placement);
  const RunSplit split = split_run(order);
  DividedRun divided;
  bool writes = false;
  for (int task = 0; task < static_cast<int>(split.tasks.size()); ++task) {
    RunPart part = PartBuilder(request, order, split, placement, task).build();
    writes = writes || part.writes;
    if (has_work(part)) divided.parts.push_back(std::move(part));
  }
  for (RunPart& part : divided.parts) {
    part.run_writes = writes;
    part.graph_seed = run.operations().empty() ? 0 : run.operations().front().graph().seed();
  }
  for (size_t i = 0; i < request.fetches.size(); ++i) {
    if (request.fetches[i].is_operation()) continue;
    for (size_t j = 0; j < request.feeds.size(); ++j) {
      if (request.feeds[j] == request.fetches[i].output())
        divided.fetched_feeds.emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
  return divided;
}

}  // namespace longhaul

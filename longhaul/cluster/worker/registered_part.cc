#include "longhaul/cluster/worker/registered_part.h"

#include <fmt/format.h>

#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/host/queues/seed.h"
#include "longhaul/runtime/plan/plan_builder.h"

namespace longhaul {
namespace {

std::map<std::string, Tensor> constants_of(const proto::RegisterGraphRequest& request,
                                           const std::vector<Tensor>& values) {
  if (values.size() != static_cast<size_t>(request.constant_size())) {
    throw InvalidArgumentError(fmt::format("the part {} names {} constants, but has the values of {}",
                                           request.graph_handle(), request.constant_size(), values.size()));
  }
  std::map<std::string, Tensor> constants;
  for (int i = 0; i < request.constant_size(); ++i) {
    constants.emplace(request.constant(i), values[static_cast<size_t>(i)]);
  }
  return constants;
}

std::map<int64_t, proto::Bundle> by_number(const google::protobuf::RepeatedPtrField<proto::Bundle>& bundles) {
  std::map<int64_t, proto::Bundle> numbered;
  for (const proto::Bundle& bundle : bundles) {
    if (bundle.values() < 0 || bundle.values() > (1 << 20)) {
      throw InvalidArgumentError(fmt::format("message {} has {} values", bundle.id(), bundle.values()));
    }
    numbered.emplace(bundle.id(), bundle);
  }
  return numbered;
}

Session::Request request_of(const proto::RegisterGraphRequest& request, const Graph& graph) {
  Session::Request wanted;
  wanted.options.snapshot = request.is_snapshot();
  for (const std::string& feed : request.feed()) wanted.feeds.push_back(Fetch(feed).resolve(graph).output());
  for (const std::string& fetch : request.fetch()) wanted.fetches.push_back(Fetch(fetch).resolve(graph));
  for (const std::string& target : request.target()) wanted.fetches.push_back(Fetch(target).resolve(graph));
  return wanted;
}

// No seed stays none.
uint64_t seed_of(const proto::RegisterGraphRequest& request) {
  if (request.graph_seed() == 0 || request.joined_as().empty()) return request.graph_seed();
  const uint64_t own = seed_of_name(request.joined_as());
  return own == request.graph_seed() ? own : own ^ request.graph_seed();
}

// Another program may have declared the variable otherwise: its value would replace that of the model, or be read as
// something else.
void check_declared_alike(const Operation& variable, SessionState& session) {
  const std::shared_ptr<VariableSlot> slot = session.variable(variable);
  if (!slot->initialized()) return;
  const Value value = slot->read();
  const Output declared = variable.output();
  if (value.dtype() == declared.dtype() && value.shape().compatible_with(declared.shape())) return;
  throw InvalidArgumentError(fmt::format(
      "variable {} is {} of shape {} on this task, but {} of shape {} in the graph of this program: all programs that "
      "use a variable must declare it alike. If it is left over from another training, reset the servers",
      variable.name(), dtype_name(value.dtype()), value.shape().to_string(), dtype_name(declared.dtype()),
      declared.shape().to_string()));
}

}  // namespace

std::shared_ptr<const RegisteredPart> register_part(const proto::RegisterGraphRequest& request,
                                                    const std::vector<Tensor>& constants,
                                                    const std::shared_ptr<SessionState>& session) {
  const auto part = std::make_shared<RegisteredPart>();
  part->graph.set_seed(seed_of(request));
  import_graph_def(part->graph, request.graph(), {.is_part = true, .constants = constants_of(request, constants)});
  for (const Operation& op : part->graph.operations()) {
    if (op.type() == "VariableV2") check_declared_alike(op, *session);
  }
  part->plan = std::make_shared<Plan>(PlanBuilder(request_of(request, part->graph), *session).build(), session);
  part->fetches.assign(request.fetch().begin(), request.fetch().end());
  part->bundles = {by_number(request.sent()), by_number(request.received())};
  part->run_writes = request.run_writes();
  part->changes_state = part->plan->writes_variables() || (part->run_writes && part->plan->draws_random_numbers());
  return part;
}

}  // namespace longhaul

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/graph/builtin/resolver.h"
#include "longhaul/graph/graph.h"

namespace longhaul {
namespace builtin {
namespace {

constexpr int64_t kStateSize = 3;  // the key, the draws of training steps, those of other runs

void need_place(const OperationSpec& spec) {
  const auto& places = need_attr<std::vector<std::string>>(spec, "_class");
  if (places.size() != 1 || !places[0].starts_with("loc:@"))
    refuse(spec, "attr _class must be one location, loc:@NAME");
}

// How far the random numbers of the operation at its place are.
OpInfo resolve_random_state(const OperationSpec& spec) {
  need_inputs(spec, 0);
  need_place(spec);
  return {{{kInt64, {kStateSize}}}};
}

// Puts that back; of an empty tensor, the beginning.
OpInfo resolve_restore_random_state(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kInt64);
  need_place(spec);
  return {{}, kWritesVariable};
}

}  // namespace

ResolverTable random_ops() {
  return {{"RandomState", resolve_random_state}, {"RestoreRandomState", resolve_restore_random_state}};
}

}  // namespace builtin

bool has_random_stream(const Operation& op) {
  const bool draws = (op.traits() & kRandom) != 0;
  return draws && (op.type() == "RandomShuffle" || op.type().starts_with("aten::"));
}

Operation colocated_operation(const Operation& op) {
  const auto* places = op.find_attr<std::vector<std::string>>("_class");
  constexpr std::string_view kPlace = "loc:@";
  if (places == nullptr || places->empty() || !places->front().starts_with(kPlace)) {
    throw InvalidArgumentError(op.name() + " is not colocated with another operation (attr _class)");
  }
  return op.graph().operation(places->front().substr(kPlace.size()));
}

}  // namespace longhaul

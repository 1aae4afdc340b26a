#include "longhaul/graph/builtin/resolver.h"

// What the tasks of a run send each other (placement/part_graph.h). Only parts of runs have such operations: an import
// refuses them otherwise.
namespace longhaul::builtin {
namespace {

void need_message(const OperationSpec& spec) {
  if (need_attr<std::string>(spec, "peer").empty()) refuse(spec, "attr peer must be the name of a task");
  if (need_attr<int64_t>(spec, "bundle") < 0) refuse(spec, "attr bundle must not be negative");
}

void need_slot(const OperationSpec& spec) {
  if (need_attr<int64_t>(spec, "slot") < 0) refuse(spec, "attr slot must not be negative");
}

OpInfo resolve_send(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_message(spec);
  need_slot(spec);
  need_dtype(spec, 0, need_attr<DType>(spec, "T"));
  return {{}, kSideEffect};
}

OpInfo resolve_receive(const OperationSpec& spec) {
  need_inputs(spec, 0);
  need_message(spec);
  need_slot(spec);
  const Shape* shape = find_attr<Shape>(spec, "shape");
  return {{{need_attr<DType>(spec, "T"), shape == nullptr ? Shape::unknown_rank() : *shape}}, kMayWait};
}

OpInfo resolve_send_control(const OperationSpec& spec) {
  need_inputs(spec, 0);
  need_message(spec);
  return {{}, kSideEffect};
}

OpInfo resolve_receive_control(const OperationSpec& spec) {
  need_inputs(spec, 0);
  need_message(spec);
  return {{}, kMayWait};
}

}  // namespace

ResolverTable transfer_ops() {
  return {
      {"_Send", resolve_send},
      {"_Recv", resolve_receive},
      {"_SendControl", resolve_send_control},
      {"_RecvControl", resolve_receive_control},
  };
}

}  // namespace longhaul::builtin

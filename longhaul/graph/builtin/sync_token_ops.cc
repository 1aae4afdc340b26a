#include "longhaul/graph/builtin/resolver.h"
#include "longhaul/graph/queue_signature.h"

namespace longhaul::builtin {
namespace {

// Checks that the first input is a queue of steps, and returns their dtype.
DType need_token_queue(const OperationSpec& spec) {
  static const auto* types = new std::vector<std::string>{"FIFOQueueV2"};
  need_resource(spec, 0, *types, "a queue of tokens");
  const QueueSignature signature = queue_signature(spec.inputs[0].op());
  if (signature.dtypes.size() != 1 || (signature.dtypes[0] != kInt32 && signature.dtypes[0] != kInt64))
    refuse(spec, "the elements of a queue of tokens are single int32 or int64 values");
  return signature.dtypes[0];
}

DType need_step(const OperationSpec& spec) {
  need_inputs(spec, 2);
  const DType dtype = need_token_queue(spec);
  need_dtype(spec, 1, dtype);
  if (!spec.inputs[1].shape().compatible_with(Shape{})) refuse(spec, "a step is a scalar");
  return dtype;
}

OpInfo resolve_join(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_token_queue(spec);
  need_attr<std::string>(spec, "holder");
  const bool* awaits = find_attr<bool>(spec, "await_chief");
  return {{}, kSideEffect | (awaits != nullptr && *awaits ? kMayWait : kPure), 1};
}

OpInfo resolve_follow(const OperationSpec& spec) {
  need_step(spec);
  need_attr<std::string>(spec, "holder");
  return {{}, kSideEffect | kMayWait, 1};
}

OpInfo resolve_take_token(const OperationSpec& spec) {
  const DType dtype = need_step(spec);
  need_attr<std::string>(spec, "holder");
  return {{{dtype, Shape{}}}, kTakesInput | kMayWait, 1};
}

OpInfo resolve_new_tokens(const OperationSpec& spec) {
  need_step(spec);
  if (need_attr<int64_t>(spec, "count") < 0) refuse(spec, "the number of tokens must not be negative");
  return {{}, kSideEffect, 1};
}

}  // namespace

ResolverTable sync_token_ops() {
  return {{"SyncTokenJoin", resolve_join},
          {"SyncTokenFollow", resolve_follow},
          {"SyncTokenTake", resolve_take_token},
          {"SyncTokenPut", resolve_new_tokens},
          {"SyncTokenRenew", resolve_new_tokens}};
}

}  // namespace longhaul::builtin

#include "longhaul/base/error.h"
#include "longhaul/host/accumulators/sync_tokens.h"
#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/named_errors.h"

namespace longhaul {
namespace {

// Of the first input, which is a queue.
std::shared_ptr<SyncTokens> tokens_of_call(const HostCall& call) {
  auto queue = std::dynamic_pointer_cast<Queue>(call.resources[0]);
  if (queue == nullptr) throw InternalError(call.op.name() + ": its input is a resource of another kind");
  return sync_tokens(call.own, queue);
}

SyncTokens::Replica replica_of(const HostCall& call) {
  return {.session = call.session == nullptr ? nullptr : *call.session,
          .holder = attr_or<std::string>(call.op, "holder", ""),
          .worker = attr_or<std::string>(call.op, "worker", "a replica")};
}

SyncTokens::Wait token_wait_of(const HostCall& call) {
  return {.limits = call.limits, .clock = call.clock};
}

int64_t step_in(const HostCall& call) {
  const Tensor& step = call.inputs[1];
  return step.dtype() == kInt32 ? step.item<int32_t>() : step.item<int64_t>();
}

void join(HostCall& call) {
  const std::shared_ptr<SyncTokens> tokens = tokens_of_call(call);
  const SyncTokens::Replica replica = replica_of(call);
  if (attr_or<bool>(call.op, "await_chief", false)) tokens->await_chief(replica, token_wait_of(call));
  tokens->join(replica);
}

void follow(HostCall& call) {
  tokens_of_call(call)->follow(replica_of(call), step_in(call), token_wait_of(call));
}

void take_token(HostCall& call) {
  const bool is_small = call.inputs[1].dtype() == kInt32;
  const int64_t step = tokens_of_call(call)->take(replica_of(call), step_in(call), token_wait_of(call));
  call.results.push_back(is_small ? Tensor::scalar(static_cast<int32_t>(step)) : Tensor::scalar(step));
}

void put_tokens(HostCall& call) {
  tokens_of_call(call)->put(step_in(call), attr_or<int64_t>(call.op, "count", 0));
}

void renew_tokens(HostCall& call) {
  const Cancellation* session = call.session == nullptr ? nullptr : call.session->get();
  tokens_of_call(call)->renew(session, step_in(call), attr_or<int64_t>(call.op, "count", 0));
}

}  // namespace

HostKernelTable sync_token_host_kernels() {
  return {{{"SyncTokenJoin", named_errors<join>},
           {"SyncTokenFollow", named_errors<follow>},
           {"SyncTokenTake", named_errors<take_token>},
           {"SyncTokenPut", named_errors<put_tokens>},
           {"SyncTokenRenew", named_errors<renew_tokens>}},
          {}};
}

}  // namespace longhaul

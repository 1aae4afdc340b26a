#include "longhaul/cluster/worker/part_messages.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

const proto::Bundle& known_bundle(const std::map<int64_t, proto::Bundle>& bundles, int64_t id, const char* what) {
  const auto found = bundles.find(id);
  if (found != bundles.end()) return found->second;
  throw InternalError(fmt::format("the part of the run {} no message {}", what, id));
}

void check_slot(const proto::Bundle& bundle, int64_t slot) {
  if (slot >= 0 && slot < bundle.values()) return;
  throw InternalError(fmt::format("message {} with task {} has {} values, and so none in slot {}", bundle.id(),
                                  bundle.task(), bundle.values(), slot));
}

}  // namespace

void PartMessages::send(int64_t id, int64_t slot, Tensor value) {
  const proto::Bundle& bundle = known_bundle(bundles_.sent, id, "sends");
  if (bundle.values() == 0) return deliver(bundle, {});
  check_slot(bundle, slot);
  const auto count = static_cast<size_t>(bundle.values());
  Outgoing& outgoing = outgoing_.try_emplace(id, Outgoing{std::vector<Tensor>(count), count}).first->second;
  Tensor& place = outgoing.values.at(static_cast<size_t>(slot));
  if (outgoing.missing == 0 || place.defined()) {
    throw InternalError(fmt::format("slot {} of message {} to task {} is sent twice", slot, id, bundle.task()));
  }
  place = std::move(value);
  if (--outgoing.missing == 0) deliver(bundle, std::move(outgoing.values));
}

void PartMessages::deliver(const proto::Bundle& bundle, std::vector<Tensor> values) {
  const auto peer = step_.incarnations.find(bundle.task());
  if (peer == step_.incarnations.end()) {
    throw InternalError(
        fmt::format("message {} goes to task {}, which the step's master has not named as a "
                    "participant",
                    bundle.id(), bundle.task()));
  }
  sender_.send({.task = peer->first, .incarnation = peer->second}, bundle.id(), std::move(values));
}

Tensor PartMessages::receive(int64_t id, int64_t slot, const WaitLimits& limits) {
  const proto::Bundle& bundle = known_bundle(bundles_.received, id, "receives");
  std::vector<Tensor>& values = received(bundle, limits);
  if (bundle.values() == 0) return {};
  check_slot(bundle, slot);
  return std::move(values.at(static_cast<size_t>(slot)));
}

// What has ended the work says why, and whether the session is lost.
std::vector<Tensor> PartMessages::awaited(const proto::Bundle& bundle, Cancellation* cancellation) {
  try {
    return exchange_.receive({.step = step_.step, .id = bundle.id(), .from = bundle.task()},
                             {.deadline = step_.deadline, .cancellation = cancellation});
  } catch (const CancelledError&) {
    if (cancellation != nullptr) cancellation->check();
    throw;
  }
}

std::vector<Tensor>& PartMessages::received(const proto::Bundle& bundle, const WaitLimits& limits) {
  const auto found = received_.find(bundle.id());
  if (found != received_.end()) return found->second;
  std::vector<Tensor> values = awaited(bundle, limits.cancellation);
  if (static_cast<int>(values.size()) != bundle.values()) {
    throw InternalError(fmt::format("task {} has sent {} values in message {}, which has {}", bundle.task(),
                                    values.size(), bundle.id(), bundle.values()));
  }
  return received_.emplace(bundle.id(), std::move(values)).first->second;
}

}  // namespace longhaul

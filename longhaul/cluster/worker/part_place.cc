#include "longhaul/cluster/worker/part_place.h"

#include "longhaul/graph/device_spec.h"

namespace longhaul {
namespace {

constexpr size_t kLongestText = 1000;

// What sends and receives has none: the CPU does it.
std::string device_within_task(const std::string& device) {
  const DeviceSpec spec = DeviceSpec{.type = "CPU", .index = 0}.merged_with(DeviceSpec::parse(device));
  return DeviceSpec{.type = spec.type, .index = spec.index}.to_string();
}

}  // namespace

Seconds PartPlace::looked_at(const Operation* op, Seconds now) {
  MutexLock lock(mutex_);
  if (seen_.op != op) seen_ = {op, now};
  return now - seen_.first;
}

proto::LookAtStepReply PartPlace::look() {
  const Operation* const op = run_.now();
  const Seconds now = clock_.now();
  proto::LookAtStepReply reply;
  reply.set_secs((now - came_).count());
  reply.set_place(op != nullptr ? proto::PLACE_RUNS : place_.load(std::memory_order_relaxed));
  reply.set_operation_secs(looked_at(op, now).count());
  if (op == nullptr) return reply;
  reply.set_operation(op->name().substr(0, kLongestText));
  reply.set_type(op->type().substr(0, kLongestText));
  reply.set_device(device_within_task(op->device()).substr(0, kLongestText));
  const std::string* const peer = op->find_attr<std::string>("peer");
  if (peer != nullptr && op->type().starts_with("_Recv")) reply.set_peer(peer->substr(0, kLongestText));
  return reply;
}

}  // namespace longhaul

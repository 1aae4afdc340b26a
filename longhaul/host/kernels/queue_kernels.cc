#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>

#include "longhaul/base/clock.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/queues/queue.h"

namespace longhaul {
namespace {

int64_t int_attr(const Operation& op, const char* name, int64_t otherwise) {
  const auto* value = op.find_attr<int64_t>(name);
  return value == nullptr ? otherwise : *value;
}

std::shared_ptr<Resource> make_queue(const Operation& handle, const char* kind, std::unique_ptr<ElementStore> store) {
  const auto* shared_name = handle.find_attr<std::string>("shared_name");
  return std::make_shared<Queue>(
      QueueSpec{.kind = kind,
                .name = shared_name == nullptr || shared_name->empty() ? handle.name() : *shared_name,
                .signature = queue_signature(handle),
                .capacity = int_attr(handle, "capacity", -1),
                .min_after_dequeue = static_cast<size_t>(int_attr(handle, "min_after_dequeue", 0))},
      std::move(store));
}

std::shared_ptr<Resource> make_fifo_queue(const Operation& handle) {
  return make_queue(handle, "FIFOQueue", make_fifo_store());
}

std::shared_ptr<Resource> make_padding_queue(const Operation& handle) {
  return make_queue(handle, "PaddingFIFOQueue", make_fifo_store());
}

std::shared_ptr<Resource> make_priority_queue(const Operation& handle) {
  return make_queue(handle, "PriorityQueue", make_priority_store());
}

std::shared_ptr<Resource> make_shuffle_queue(const Operation& handle) {
  return make_queue(handle, "RandomShuffleQueue",
                    make_shuffle_store(static_cast<uint64_t>(int_attr(handle, "seed", 0)),
                                       static_cast<uint64_t>(int_attr(handle, "seed2", 0))));
}

// The run's limits, or the operation's own timeout where that is shorter. Both are on the machine's clock; a wait that
// has neither is on the task's.
WaitLimits limits_of(const HostCall& call) {
  WaitLimits limits = call.limits;
  const int64_t timeout_ms = int_attr(call.op, "timeout_ms", -1);
  if (timeout_ms < 0 && limits.deadline.count() <= 0) limits.clock = call.clock;
  if (timeout_ms < 0) return limits;
  const Seconds deadline = Clock::real().now() + std::chrono::milliseconds(timeout_ms);
  limits.deadline = limits.deadline.count() > 0 ? std::min(limits.deadline, deadline) : deadline;
  return limits;
}

// dynamic_cast, for a class that nobody derives from.
Queue& queue_of(const HostCall& call) {
  Resource& resource = *call.resources[0];
  return typeid(resource) == typeid(Queue) ? static_cast<Queue&>(resource) : call.resource<Queue>();
}

// Calls `body`; errors get the operation's name.
template <typename Body>
void with_name(const HostCall& call, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{}: {}", call.op.name(), error.what()));
  }
}

void enqueue(HostCall& call) {
  with_name(call, [&] {
    Queue& queue = queue_of(call);
    QueueElement element(std::make_move_iterator(call.inputs.begin() + 1), std::make_move_iterator(call.inputs.end()));
    if (!queue.try_enqueue(element)) queue.enqueue(std::move(element), limits_of(call));
  });
}

void enqueue_many(HostCall& call) {
  with_name(call, [&] { queue_of(call).enqueue_many(call.inputs.subspan(1), limits_of(call)); });
}

void dequeue(HostCall& call) {
  with_name(call, [&] {
    Queue& queue = queue_of(call);
    if (!queue.try_dequeue(&call.results)) call.results = queue.dequeue(limits_of(call));
  });
}

void dequeue_many(HostCall& call) {
  with_name(call, [&] { call.results = queue_of(call).dequeue_many(call.inputs[1].item<int64_t>(), limits_of(call)); });
}

void dequeue_up_to(HostCall& call) {
  with_name(call,
            [&] { call.results = queue_of(call).dequeue_up_to(call.inputs[1].item<int64_t>(), limits_of(call)); });
}

void close(HostCall& call) {
  const auto* cancel = call.op.find_attr<bool>("cancel_pending_enqueues");
  queue_of(call).close(cancel != nullptr && *cancel);
}

void is_closed(HostCall& call) {
  call.results.push_back(Tensor::scalar(queue_of(call).is_closed()));
}

void size(HostCall& call) {
  call.results.push_back(Tensor::scalar(static_cast<int32_t>(queue_of(call).size())));
}

}  // namespace

HostKernelTable queue_host_kernels() {
  return {{{"QueueEnqueueV2", enqueue},
           {"QueueEnqueueManyV2", enqueue_many},
           {"QueueDequeueV2", dequeue},
           {"QueueDequeueManyV2", dequeue_many},
           {"QueueDequeueUpToV2", dequeue_up_to},
           {"QueueCloseV2", close},
           {"QueueIsClosedV2", is_closed},
           {"QueueSizeV2", size}},
          {{"FIFOQueueV2", make_fifo_queue},
           {"PaddingFIFOQueueV2", make_padding_queue},
           {"PriorityQueueV2", make_priority_queue},
           {"RandomShuffleQueueV2", make_shuffle_queue}}};
}

}  // namespace longhaul

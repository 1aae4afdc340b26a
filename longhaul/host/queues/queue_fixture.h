#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {

template <typename Condition>
void eventually(Condition&& condition) {
  const Seconds deadline = Clock::real().now() + Seconds{20};
  while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(condition());
}

inline QueueElement number(int64_t value) {
  return {Tensor::scalar(value)};
}
inline int64_t value_of(const QueueElement& element) {
  return element[0].item<int64_t>();
}
inline std::vector<int64_t> values_of(const Tensor& tensor) {
  return {tensor.flat<int64_t>().begin(), tensor.flat<int64_t>().end()};
}

// A call on a thread of its own.
template <typename Call>
auto in_background(Call call) {
  return std::async(std::launch::async, std::move(call));
}

// Queues of scalar int64s.
class QueueTest : public ::testing::Test {
 protected:
  using Values = std::vector<int64_t>;

  static QueueSpec spec(const std::string& kind, int64_t capacity) {
    return {.kind = kind, .name = "q", .signature = {{kInt64}, {Shape{}}}, .capacity = capacity};
  }
  static std::unique_ptr<Queue> fifo(int64_t capacity) {
    return std::make_unique<Queue>(spec("FIFOQueue", capacity), make_fifo_store());
  }
  static std::unique_ptr<Queue> shuffle(size_t min_after_dequeue, uint64_t seed) {
    QueueSpec with_rest = spec("RandomShuffleQueue", -1);
    with_rest.min_after_dequeue = min_after_dequeue;
    return std::make_unique<Queue>(std::move(with_rest), make_shuffle_store(seed, 1));
  }
  static void put(Queue& queue, const Values& values) {
    for (int64_t value : values) queue.enqueue(number(value));
  }
  static Values take_all(Queue& queue) {
    Values values;
    while (queue.size() > 0) values.push_back(value_of(queue.dequeue()));
    return values;
  }
  static void wait_until_waiting(const Queue& queue, size_t calls) {
    eventually([&] { return queue.waiting() == calls; });
  }
};

}  // namespace longhaul

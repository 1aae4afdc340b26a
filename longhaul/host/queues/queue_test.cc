#include "longhaul/host/queues/queue.h"

#include "longhaul/host/queues/queue_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(QueueTest, GivesElementsInTheOrderOfTheirComing) {
  const auto queue = fifo(-1);
  put(*queue, {3, 1, 2});
  EXPECT_EQ(queue->size(), 3u);
  EXPECT_THAT(take_all(*queue), ElementsAre(3, 1, 2));
}

TEST_F(QueueTest, AnEnqueueWaitsWhileTheQueueIsFull) {
  const auto queue = fifo(1);
  put(*queue, {1});
  auto late = in_background([&] { queue->enqueue(number(2)); });
  wait_until_waiting(*queue, 1);
  EXPECT_EQ(queue->size(), 1u);
  EXPECT_EQ(value_of(queue->dequeue()), 1);
  late.get();
  EXPECT_EQ(value_of(queue->dequeue()), 2);
}

TEST_F(QueueTest, ADequeueWaitsForAnElement) {
  const auto queue = fifo(1);
  auto early = in_background([&] { return value_of(queue->dequeue()); });
  wait_until_waiting(*queue, 1);
  put(*queue, {7});
  EXPECT_EQ(early.get(), 7);
}

TEST_F(QueueTest, ServesDequeuesInTheOrderInWhichTheyCame) {
  const auto queue = fifo(-1);
  std::vector<std::future<int64_t>> calls;
  for (size_t i = 0; i < 3; ++i) {
    calls.push_back(in_background([&] { return value_of(queue->dequeue()); }));
    wait_until_waiting(*queue, i + 1);
  }
  put(*queue, {10, 11, 12});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(calls[i].get(), 10 + static_cast<int64_t>(i));
}

TEST_F(QueueTest, ServesEnqueuesInTheOrderInWhichTheyCame) {
  const auto queue = fifo(1);
  put(*queue, {0});
  std::vector<std::future<void>> calls;
  for (size_t i = 1; i <= 3; ++i) {
    calls.push_back(in_background([&queue, i] { queue->enqueue(number(static_cast<int64_t>(i))); }));
    wait_until_waiting(*queue, i);
  }
  for (int64_t i = 0; i <= 3; ++i) EXPECT_EQ(value_of(queue->dequeue()), i);
}

TEST_F(QueueTest, ASmallDequeueDoesNotOvertakeALargeOne) {
  const auto queue = fifo(-1);
  auto large = in_background([&] { return values_of(queue->dequeue_many(3)[0]); });
  wait_until_waiting(*queue, 1);
  auto small = in_background([&] { return value_of(queue->dequeue()); });
  wait_until_waiting(*queue, 2);
  put(*queue, {1, 2, 3, 4});
  EXPECT_THAT(large.get(), ElementsAre(1, 2, 3));
  EXPECT_EQ(small.get(), 4);
}

TEST_F(QueueTest, ADequeueOnAClosedEmptyQueueIsOutOfRange) {  // SG-5, QR-3
  const auto queue = fifo(3);
  put(*queue, {1});
  queue->close(/*cancel_pending_enqueues=*/false);
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_TRUE(queue->is_closed());
  EXPECT_EQ(value_of(queue->dequeue()), 1);
  EXPECT_EQ(coded_error_of([&] { queue->dequeue(); }),
            "OUT_OF_RANGE: FIFOQueue 'q' is closed and has insufficient elements (requested 1, current size 0)");
}

TEST_F(QueueTest, AnEnqueueOnAClosedQueueIsCancelled) {  // SG-5
  const auto queue = fifo(3);
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_EQ(coded_error_of([&] { queue->enqueue(number(1)); }), "CANCELLED: FIFOQueue 'q' is closed.");
  EXPECT_EQ(coded_error_of([&] { queue->enqueue_many(std::vector<Tensor>{Tensor::of<int64_t>({1, 2})}); }),
            "CANCELLED: FIFOQueue 'q' is closed.");
  EXPECT_EQ(queue->size(), 0u);
}

TEST_F(QueueTest, ACloseCanCancelEnqueuesThatWait) {  // SG-5
  const auto queue = fifo(1);
  put(*queue, {1});
  auto first = in_background([&] { queue->enqueue(number(2)); });
  auto second = in_background([&] { queue->enqueue(number(3)); });
  wait_until_waiting(*queue, 2);
  queue->close(/*cancel_pending_enqueues=*/true);
  EXPECT_EQ(coded_error_of([&] { first.get(); }), "CANCELLED: FIFOQueue 'q': Enqueue operation was cancelled");
  EXPECT_EQ(coded_error_of([&] { second.get(); }), "CANCELLED: FIFOQueue 'q': Enqueue operation was cancelled");
  EXPECT_THAT(take_all(*queue), ElementsAre(1));
}

TEST_F(QueueTest, AnEnqueueThatWaitedBeforeAPlainCloseGoesOn) {
  const auto queue = fifo(1);
  put(*queue, {1});
  auto late = in_background([&] { queue->enqueue(number(2)); });
  wait_until_waiting(*queue, 1);
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_THAT(values_of(queue->dequeue_many(2)[0]), ElementsAre(1, 2));
  late.get();
  EXPECT_THROW(queue->dequeue(), OutOfRangeError);
}

TEST_F(QueueTest, ACloseEndsDequeuesThatWait) {
  const auto queue = fifo(3);
  put(*queue, {1});
  auto many = in_background([&] { return queue->dequeue_many(2); });
  wait_until_waiting(*queue, 1);
  auto rest = in_background([&] { return value_of(queue->dequeue()); });
  wait_until_waiting(*queue, 2);
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_THAT(coded_error_of([&] { many.get(); }),
              HasSubstr("is closed and has insufficient elements (requested 2, current size 1)"));
  EXPECT_EQ(rest.get(), 1) << "what a failed call had taken is there for the next";
}

TEST_F(QueueTest, ADequeueManyOnAClosedQueueWithTooFewLeavesThem) {
  const auto queue = fifo(-1);
  put(*queue, {1, 2});
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_THROW(queue->dequeue_many(3), OutOfRangeError);
  EXPECT_THAT(take_all(*queue), ElementsAre(1, 2));
}

TEST_F(QueueTest, ADequeueUpToGivesTheRestOfAClosedQueue) {
  const auto queue = fifo(-1);
  put(*queue, {1, 2, 3});
  EXPECT_THAT(values_of(queue->dequeue_up_to(2)[0]), ElementsAre(1, 2));
  auto rest = in_background([&] { return values_of(queue->dequeue_up_to(2)[0]); });
  wait_until_waiting(*queue, 1);
  queue->close(/*cancel_pending_enqueues=*/false);
  EXPECT_THAT(rest.get(), ElementsAre(3));
  EXPECT_THROW(queue->dequeue_up_to(2), OutOfRangeError);
}

TEST_F(QueueTest, ACancellationEndsAWaitAndLosesNoElement) {  // SS-5
  const auto queue = fifo(-1);
  Cancellation cancellation;
  put(*queue, {1, 2});
  auto many = in_background([&] { return queue->dequeue_many(3, {.cancellation = &cancellation}); });
  wait_until_waiting(*queue, 1);
  EXPECT_EQ(queue->size(), 0u) << "the call that waits has them";
  cancellation.cancel("the session was closed (Session::Close)");
  EXPECT_EQ(coded_error_of([&] { many.get(); }), "CANCELLED: the session was closed (Session::Close)");
  EXPECT_THAT(take_all(*queue), ElementsAre(1, 2));
  EXPECT_THROW(queue->dequeue({.cancellation = &cancellation}), CancelledError);
}

TEST_F(QueueTest, ACancellationEndsAnEnqueueThatWaits) {
  const auto queue = fifo(2);
  Cancellation cancellation;
  const std::vector<Tensor> rows{Tensor::of<int64_t>({1, 2, 3})};
  auto many = in_background([&] { queue->enqueue_many(rows, {.cancellation = &cancellation}); });
  wait_until_waiting(*queue, 1);
  cancellation.cancel("stop");
  EXPECT_EQ(coded_error_of([&] { many.get(); }), "CANCELLED: stop");
  EXPECT_EQ(queue->waiting(), 0u);
  EXPECT_THAT(take_all(*queue), ElementsAre(1, 2)) << "what was put before stays";
}

TEST_F(QueueTest, ADeadlineEndsAWaitAndLosesNoElement) {  // SS-6
  const auto queue = fifo(-1);
  put(*queue, {1, 2});
  const WaitLimits limits{.deadline = Clock::real().now() + Seconds{0.01}};
  EXPECT_THROW(queue->dequeue_many(3, limits), DeadlineExceededError);
  EXPECT_THAT(take_all(*queue), ElementsAre(1, 2));
}

TEST_F(QueueTest, WhatAFailedCallGivesBackGoesToTheNextInLine) {
  const auto queue = fifo(-1);
  Cancellation cancellation;
  auto many = in_background([&] { return queue->dequeue_many(3, {.cancellation = &cancellation}); });
  wait_until_waiting(*queue, 1);
  auto single = in_background([&] { return value_of(queue->dequeue()); });
  wait_until_waiting(*queue, 2);
  put(*queue, {5});
  cancellation.cancel("stop");
  EXPECT_THROW(many.get(), CancelledError);
  EXPECT_EQ(single.get(), 5);
}

TEST_F(QueueTest, ADequeueManyMayBeLargerThanTheQueue) {
  const auto queue = fifo(2);
  auto many = in_background([&] { return values_of(queue->dequeue_many(5)[0]); });
  put(*queue, {1, 2, 3, 4, 5});
  EXPECT_THAT(many.get(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(QueueTest, AnEnqueueManyMayBeLargerThanTheQueue) {
  const auto queue = fifo(2);
  auto many = in_background([&] { queue->enqueue_many(std::vector<Tensor>{Tensor::of<int64_t>({1, 2, 3, 4, 5})}); });
  for (int64_t i = 1; i <= 5; ++i) EXPECT_EQ(value_of(queue->dequeue()), i);
  many.get();
}

TEST_F(QueueTest, AnElementTooMuchToStackStays) {
  QueueSpec huge = spec("FIFOQueue", -1);
  huge.signature = {{kUInt8}, {Shape{int64_t{1} << 31, int64_t{1} << 31}}};
  Queue queue(huge, make_fifo_store());
  const uint8_t byte = 0;
  for (int i = 0; i < 4; ++i) queue.enqueue({Tensor::wrap(kUInt8, huge.signature.shapes[0], &byte, nullptr)});
  EXPECT_THROW(queue.dequeue_many(4), InvalidArgumentError);
  EXPECT_EQ(queue.size(), 4u);
}

// Takes any number but 13.
class SuperstitiousStore : public ElementStore {
 public:
  void put(StoredElement element) override {
    if (element.component(0).item<int64_t>() == 13) throw ResourceExhaustedError("no room for a 13");
    inner_->put(std::move(element));
  }
  StoredElement take() override { return inner_->take(); }
  void put_back(std::vector<StoredElement> taken) override { inner_->put_back(std::move(taken)); }
  size_t size() const override { return inner_->size(); }

 private:
  const std::unique_ptr<ElementStore> inner_ = make_fifo_store();
};

TEST_F(QueueTest, AnElementThatTheStoreRefusesIsItsOwnCallsError) {
  Queue queue(spec("FIFOQueue", 1), std::make_unique<SuperstitiousStore>());
  const std::vector<Tensor> rows{Tensor::of<int64_t>({13, 14})};
  EXPECT_THROW(queue.enqueue_many(rows), ResourceExhaustedError);
  EXPECT_EQ(queue.waiting(), 0u) << "a call that has ended is no more in line";
  put(queue, {1});
  const WaitLimits limits{.deadline = Clock::real().now() + Seconds{20}};
  auto refused = in_background([&] { queue.enqueue(number(13), limits); });
  wait_until_waiting(queue, 1);
  EXPECT_EQ(value_of(queue.dequeue()), 1) << "which is the call that lets the other one in";
  EXPECT_EQ(coded_error_of([&] { refused.get(); }), "RESOURCE_EXHAUSTED: no room for a 13");
  put(queue, {2});
  EXPECT_EQ(value_of(queue.dequeue()), 2);
}

TEST_F(QueueTest, NoRowsAtAllMustFitToo) {
  Queue queue({.kind = "FIFOQueue", .name = "q", .signature = {{kInt64, kFloat}, {Shape{}, Shape{2}}}},
              make_fifo_store());
  const Tensor numbers(kInt64, {0});
  const auto error_of_rows = [&](std::vector<Tensor> rows) {
    return coded_error_of([&] { queue.enqueue_many(rows); });
  };
  EXPECT_EQ(error_of_rows({numbers, Tensor(kFloat, {0, 2})}), "");
  EXPECT_THAT(error_of_rows({}), HasSubstr("Wrong number of components in tuple. Expected 2, got 0"));
  EXPECT_THAT(error_of_rows({numbers}), HasSubstr("Wrong number of components in tuple. Expected 2, got 1"));
  EXPECT_THAT(error_of_rows({numbers, Tensor(kInt64, {0, 2})}),
              HasSubstr("Type mismatch in tuple component 1. Expected float, got int64"));
  EXPECT_THAT(error_of_rows({numbers, Tensor(kFloat, {0, 3})}),
              HasSubstr("Shape mismatch in tuple component 1. Expected [2], got [3]"));
}

TEST_F(QueueTest, RefusesElementsThatDoNotFit) {
  const auto queue = fifo(3);
  EXPECT_THAT(coded_error_of([&] { queue->enqueue({}); }),
              HasSubstr("Wrong number of components in tuple. Expected 1, got 0"));
  EXPECT_THAT(coded_error_of([&] { queue->enqueue({Tensor::scalar(1.f)}); }),
              HasSubstr("Type mismatch in tuple component 0. Expected int64, got float"));
  EXPECT_THAT(coded_error_of([&] { queue->enqueue({Tensor::of<int64_t>({1})}); }),
              HasSubstr("Shape mismatch in tuple component 0. Expected [], got [1]"));
  EXPECT_THAT(coded_error_of([&] { queue->enqueue_many(number(1)); }), HasSubstr("component 0 is a scalar"));
  EXPECT_THAT(coded_error_of([&] { queue->dequeue_many(-1); }), HasSubstr("requested -1 < 0 elements"));
  EXPECT_EQ(queue->size(), 0u);
}

TEST_F(QueueTest, RowsOfOneEnqueueManyAreEqualInNumber) {
  Queue queue({.kind = "FIFOQueue", .name = "q", .signature = {{kInt64, kString}, {}}}, make_fifo_store());
  const std::vector<Tensor> rows{Tensor::of<int64_t>({1, 2}), Tensor::of<std::string>({"a"})};
  EXPECT_THAT(coded_error_of([&] { queue.enqueue_many(rows); }),
              HasSubstr("All input tensors must have the same size in the 0th dimension. Component 1 has 1, and should "
                        "have 2"));
}

TEST_F(QueueTest, SeveralThreadsGetEachElementOnce) {
  constexpr int64_t kThreads = 3, kEach = 500;
  const auto queue = fifo(4);
  std::vector<std::future<void>> producers;
  std::vector<std::future<int64_t>> consumers;
  for (int64_t t = 0; t < kThreads; ++t) {
    producers.push_back(in_background([&queue, t] {
      for (int64_t i = 0; i < kEach; ++i) queue->enqueue(number(t * kEach + i));
    }));
    consumers.push_back(in_background([&queue] {
      int64_t sum = 0;
      try {
        while (true) sum += value_of(queue->dequeue());
      } catch (const OutOfRangeError&) {
        return sum;
      }
    }));
  }
  for (auto& producer : producers) producer.get();
  queue->close(/*cancel_pending_enqueues=*/false);
  int64_t sum = 0;
  for (auto& consumer : consumers) sum += consumer.get();
  constexpr int64_t kAll = kThreads * kEach;
  EXPECT_EQ(sum, kAll * (kAll - 1) / 2);
}

}  // namespace
}  // namespace longhaul

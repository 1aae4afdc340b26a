#include <algorithm>
#include <numeric>

#include "longhaul/host/queues/queue_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RandomShuffleQueueTest : public QueueTest {
 protected:
  static Values order_of(uint64_t seed) {
    const auto queue = shuffle(0, seed);
    Values numbers(50);
    std::iota(numbers.begin(), numbers.end(), 0);
    put(*queue, numbers);
    return take_all(*queue);
  }
};

TEST_F(RandomShuffleQueueTest, GivesEachElementOnceInTheOrderOfItsSeed) {
  const Values order = order_of(7);
  EXPECT_EQ(order, order_of(7));
  EXPECT_NE(order, order_of(8));
  Values sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(order, sorted);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST_F(RandomShuffleQueueTest, WithoutASeedEachQueueHasAnOrderOfItsOwn) {
  const auto order = [] {
    const auto queue = std::make_unique<Queue>(spec("RandomShuffleQueue", -1), make_shuffle_store(0, 0));
    Values numbers(50);
    std::iota(numbers.begin(), numbers.end(), 0);
    put(*queue, numbers);
    return take_all(*queue);
  };
  EXPECT_NE(order(), order());
}

TEST_F(RandomShuffleQueueTest, KeepsElementsToChooseFromUntilItIsClosed) {
  const auto queue = shuffle(2, 1);
  put(*queue, {1, 2, 3});
  const int64_t first = value_of(queue->dequeue());
  auto second = in_background([&] { return value_of(queue->dequeue()); });
  wait_until_waiting(*queue, 1);
  EXPECT_EQ(queue->size(), 2u);
  queue->close(/*cancel_pending_enqueues=*/false);
  const int64_t others = second.get() + value_of(queue->dequeue());
  EXPECT_EQ(first + others, 6);
  EXPECT_THAT(coded_error_of([&] { queue->dequeue(); }), HasSubstr("RandomShuffleQueue 'q' is closed and has"));
}

class PriorityQueueTest : public QueueTest {
 protected:
  PriorityQueueTest()
      : queue({.kind = "PriorityQueue", .name = "q", .signature = {{kInt64, kString}, {Shape{}, Shape{}}}},
              make_priority_store()) {}
  void put(int64_t priority, const std::string& what) {
    queue.enqueue({Tensor::scalar(priority), Tensor::scalar(what)});
  }
  std::string take() { return queue.dequeue()[1].item<std::string>(); }
  Queue queue;
};

TEST_F(PriorityQueueTest, GivesTheSmallestFirstAndOfEqualOnesTheOldest) {
  put(5, "e");
  put(-1, "a");
  put(5, "f");
  put(2, "b");
  put(2, "c");
  std::string order;
  while (queue.size() > 0) order += take();
  EXPECT_EQ(order, "abcef");
}

TEST_F(PriorityQueueTest, WhatAFailedCallGivesBackKeepsItsPlace) {
  put(1, "a");
  put(1, "b");
  EXPECT_THROW(queue.dequeue_many(3, {.deadline = Clock::real().now() + Seconds{0.005}}), DeadlineExceededError);
  put(1, "c");
  for (const char* expected : {"a", "b", "c"}) EXPECT_EQ(take(), expected);
}

TEST_F(PriorityQueueTest, APriorityIsAScalarAlsoWithoutShapes) {
  Queue undeclared({.kind = "PriorityQueue", .name = "q", .signature = {{kInt64, kString}, {}}}, make_priority_store());
  const std::vector<Tensor> rows{Tensor::of<int64_t>({1, 2}, {1, 2}), Tensor::of<std::string>({"a"})};
  const char* const refused =
      "INVALID_ARGUMENT: PriorityQueue 'q': Shape mismatch in tuple component 0. Expected [], got [2]";
  EXPECT_EQ(coded_error_of([&] { undeclared.enqueue_many(rows); }), refused);
  EXPECT_EQ(coded_error_of([&] { undeclared.enqueue({Tensor::of<int64_t>({1, 2}), Tensor::scalar("a")}); }), refused);
  EXPECT_EQ(undeclared.waiting(), 0u);
  undeclared.enqueue({Tensor::scalar(int64_t{2}), Tensor::of<std::string>({"any", "shape"})});
  EXPECT_EQ(undeclared.dequeue()[1].shape(), (Shape{2}));
}

Tensor strings(Shape shape, const std::vector<std::string>& values) {
  return Tensor::of<std::string>(std::move(shape), values);
}

TEST(PaddingFIFOQueue, FillsUpToTheLargestOfTheBatch) {
  Queue queue({.kind = "PaddingFIFOQueue", .name = "q", .signature = {{kFloat, kString}, {Shape{-1, 2}, Shape{-1}}}},
              make_fifo_store());
  queue.enqueue({Tensor::of<float>({1, 2}, {1, 2}), strings({0}, {})});
  queue.enqueue({Tensor::of<float>({3, 2}, {3, 4, 5, 6, 7, 8}), strings({2}, {"a", "b"})});
  const std::vector<Tensor> batch = queue.dequeue_many(2);
  EXPECT_TRUE(identical(batch[0], Tensor::of<float>({2, 3, 2}, {1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8})));
  EXPECT_TRUE(identical(batch[1], strings({2, 2}, {"", "", "a", "b"})));
}

TEST(PaddingFIFOQueue, FillsUpEachDimension) {
  Queue queue({.kind = "PaddingFIFOQueue", .name = "q", .signature = {{kInt64}, {Shape{-1, -1}}}}, make_fifo_store());
  queue.enqueue({Tensor::of<int64_t>({2, 1}, {1, 2})});
  queue.enqueue({Tensor::of<int64_t>({1, 3}, {3, 4, 5})});
  queue.enqueue({Tensor::of<int64_t>({0, 2}, {})});
  const Tensor batch = queue.dequeue_many(3)[0];
  EXPECT_EQ(batch.shape(), (Shape{3, 2, 3}));
  EXPECT_THAT(values_of(batch), ElementsAre(1, 0, 0, 2, 0, 0, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(PaddingFIFOQueue, ABatchOfNothingHasNoSize) {
  Queue queue({.kind = "PaddingFIFOQueue", .name = "q", .signature = {{kInt64}, {Shape{-1, 4}}}}, make_fifo_store());
  EXPECT_EQ(queue.dequeue_many(0)[0].shape(), (Shape{0, 0, 4}));
  EXPECT_THAT(coded_error_of([&] { queue.enqueue({Tensor::of<int64_t>({1, 3}, {1, 2, 3})}); }),
              HasSubstr("Shape mismatch in tuple component 0. Expected [?,4], got [1,3]"));
}

TEST(Batches, OfAQueueAreRowsInOneBuffer) {
  Queue queue({.kind = "FIFOQueue", .name = "q", .signature = {{kFloat, kString}, {Shape{2}, Shape{}}}},
              make_fifo_store());
  const std::vector<Tensor> rows{Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), strings({3}, {"a", "b", "c"})};
  queue.enqueue_many(rows);
  const QueueElement first = queue.dequeue();
  EXPECT_EQ(first[0].data(), rows[0].data()) << "an element shares the bytes that it came in";
  EXPECT_EQ(first[0].shape(), (Shape{2}));
  EXPECT_EQ(first[1].item<std::string>(), "a");
  const std::vector<Tensor> rest = queue.dequeue_many(2);
  EXPECT_TRUE(identical(rest[0], Tensor::of<float>({2, 2}, {3, 4, 5, 6})));
  EXPECT_TRUE(identical(rest[1], strings({2}, {"b", "c"})));
}

TEST(Batches, OfAQueueWithoutShapesAreRefused) {
  Queue queue({.kind = "FIFOQueue", .name = "q", .signature = {{kFloat}, {}}}, make_fifo_store());
  queue.enqueue({Tensor::scalar(1.f)});
  queue.enqueue({Tensor::of<float>({1, 2, 3})});
  EXPECT_THAT(coded_error_of([&] { queue.dequeue_many(2); }),
              HasSubstr("DequeueMany and DequeueUpTo require the components to have specified shapes."));
  EXPECT_EQ(queue.size(), 2u);
}

TEST(Batches, AnElementKeepsTheBytesOfItsRowsAlive) {
  Queue queue({.kind = "FIFOQueue", .name = "q", .signature = {{kInt64}, {Shape{}}}}, make_fifo_store());
  queue.enqueue_many(std::vector<Tensor>{Tensor::of<int64_t>({4, 5})});
  EXPECT_EQ(queue.dequeue()[0].item<int64_t>(), 4);
  EXPECT_EQ(queue.dequeue()[0].item<int64_t>(), 5);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/host/queues/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

// A session with a queue of vectors of two floats, and a placeholder for one.
class QueueRunTest : public ::testing::Test {
 protected:
  QueueRunTest()
      : queue_(root_, 2, {kFloat}, {.shapes = {Shape{2}}}),
        x_(ops::placeholder(root_, kFloat, {2}, "x")),
        enqueue_(queue_.enqueue(root_, {x_})),
        element_(queue_.dequeue(root_)[0]),
        size_(queue_.size(root_)) {}

  DirectSession& session() {
    if (!session_) session_ = std::make_unique<DirectSession>(graph_, SessionOptions{});
    return *session_;
  }
  void put(const std::vector<float>& values) { session().run(enqueue_, {{x_, floats(values)}}); }
  std::vector<float> take() { return values_of(session().run(element_)); }
  int64_t size() { return session().run(size_).item<int64_t>(); }

  void wait_until_waiting(size_t calls) {
    const auto resource = resource_of(queue_.handle().op(), session().resources().host_resources());
    const auto& queue = dynamic_cast<const Queue&>(*resource);
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (queue.waiting() != calls && Clock::real().now() < deadline) std::this_thread::yield();
    ASSERT_EQ(queue.waiting(), calls);
  }
  // A run on a thread of its own.
  std::future<Tensor> in_background(Fetch fetch, Feeds feeds = {}) {
    return std::async(std::launch::async, [&session = session(), fetch, feeds] { return session.run(fetch, feeds); });
  }

  Graph graph_;
  Scope root_{graph_};
  FIFOQueue queue_;
  Output x_;
  Operation enqueue_;
  Output element_, size_;
  std::unique_ptr<DirectSession> session_;
};

TEST_F(QueueRunTest, AnElementWaitsForWhoeverTakesIt) {
  auto early = in_background(element_);
  wait_until_waiting(1);
  put({1, 2});
  EXPECT_THAT(values_of(early.get()), ElementsAre(1, 2));
}

TEST_F(QueueRunTest, AClosedSessionEndsADequeueThatWaits) {  // SS-5
  auto run = in_background(element_);
  wait_until_waiting(1);
  session().close();
  const std::string error = coded_error_of([&] { run.get(); });
  EXPECT_THAT(error, HasSubstr("CANCELLED: fifo_queue_Dequeue"));
  EXPECT_THAT(error, HasSubstr("Session::Close"));
}

TEST_F(QueueRunTest, AClosedSessionEndsAnEnqueueThatWaits) {  // SS-5
  put({1, 2});
  put({3, 4});
  auto run = in_background(enqueue_, {{x_, floats({5, 6})}});
  wait_until_waiting(1);
  session().close();
  EXPECT_THAT(coded_error_of([&] { run.get(); }), HasSubstr("Session::Close"));
}

TEST_F(QueueRunTest, ATimeoutEndsADequeueThatWaits) {  // SS-6
  EXPECT_THROW(session().run(element_, {}, {.timeout = Seconds{0.01}}), DeadlineExceededError);
  put({1, 2});
  EXPECT_THAT(take(), ElementsAre(1, 2));
}

TEST_F(QueueRunTest, AnElementIsTakenOnceInARun) {
  put({1, 2});
  const Output doubled =
      ops::aten(root_, "aten::add.Tensor", "doubled", {{"self", element_}, {"other", element_}}).output();
  const std::vector<Tensor> results = session().run({doubled, element_, element_});
  EXPECT_THAT(values_of(results[0]), ElementsAre(2, 4));
  EXPECT_THAT(values_of(results[1]), ElementsAre(1, 2));
  EXPECT_THAT(values_of(results[2]), ElementsAre(1, 2));
  EXPECT_EQ(size(), 0);
}

TEST_F(QueueRunTest, ABatchGoesIntoComputation) {
  put({1, 2});
  put({3, 4});
  const Output batch = queue_.dequeue_many(root_, 2)[0];
  EXPECT_EQ(batch.shape(), (Shape{2, 2}));
  const Output sum = ops::aten(root_, "aten::sum", "sum", {{"self", batch}}).output();
  EXPECT_EQ(session().run(sum).item<float>(), 10);
}

TEST_F(QueueRunTest, CallablesPassElementsOnWithoutACopy) {
  const Callable enqueue = session().make_callable(enqueue_, {x_});
  const Callable dequeue = session().make_callable(element_);
  const Tensor element = floats({1, 2});
  for (int i = 0; i < 3; ++i) {
    enqueue(element);
    EXPECT_EQ(dequeue()[0].data(), element.data());
  }
}

TEST_F(QueueRunTest, AVariablesValueStaysWhatItWasInTheQueue) {
  const Variable v = ops::variable(root_, "v", floats({1, 2}));
  const Operation put_value = queue_.enqueue(root_, {v});
  const Operation add = ops::assign_add(root_, v, ops::constant(root_, floats({10, 10}))).op();
  session().run(v.initializer());
  session().run(put_value);
  session().run(add);
  session().run(put_value);
  session().run(add);
  EXPECT_THAT(take(), ElementsAre(1, 2));
  EXPECT_THAT(take(), ElementsAre(11, 12));
}

TEST_F(QueueRunTest, RowsOfAVariableStayWhatTheyWereInTheQueue) {
  const Variable v = ops::variable(root_, "v", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Operation put_rows = queue_.enqueue_many(root_, {v});
  const Operation add = ops::assign_add(root_, v, ops::constant(root_, Tensor::of<float>({2, 2}, {9, 9, 9, 9}))).op();
  session().run(v.initializer());
  session().run(put_rows);
  session().run(add);
  session().run(add);
  EXPECT_THAT(take(), ElementsAre(1, 2));
  EXPECT_THAT(take(), ElementsAre(3, 4));
}

TEST_F(QueueRunTest, WhatARunComputedIsNotOverwrittenByTheNext) {
  const Output sum = ops::aten(root_, "aten::add.Tensor", "sum", {{"self", x_}, {"other", x_}}).output();
  const Operation put_sum = queue_.enqueue(root_, {sum});
  const Callable put_double = session().make_callable(put_sum, {x_});
  put_double(floats({1, 2}));
  put_double(floats({3, 4}));
  EXPECT_THAT(take(), ElementsAre(2, 4));
  EXPECT_THAT(take(), ElementsAre(6, 8));
}

TEST_F(QueueRunTest, HandlesOfOneSharedNameAreOneQueue) {
  const FIFOQueue a(root_, 3, {kString}, {.shared_name = "words", .name = "a"});
  const FIFOQueue b(root_, 3, {kString}, {.shared_name = "words", .name = "b"});
  session().run(a.enqueue(root_, {ops::constant(root_, Tensor::scalar("text"))}));
  EXPECT_EQ(session().run(b.dequeue(root_)[0]).item<std::string>(), "text");
}

TEST_F(QueueRunTest, HandlesOfOneSharedNameDeclareTheSameElements) {
  const FIFOQueue one(root_, 3, {kString}, {.shared_name = "words", .name = "one"});
  const FIFOQueue two(root_, 3, {kString, kInt64}, {.shared_name = "words", .name = "two"});
  const FIFOQueue shaped(root_, 3, {kString}, {.shapes = {Shape{}}, .shared_name = "words", .name = "shaped"});
  session().run(one.enqueue(root_, {ops::constant(root_, Tensor::scalar("text"))}));
  for (const QueueBase& other : {QueueBase(two), QueueBase(shaped)}) {
    try {
      session().run(other.dequeue(root_)[0], {}, {.timeout = Seconds{20}});
      ADD_FAILURE() << other.name();
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(
          error.what(),
          HasSubstr(other.name() + ": Shared queue 'words' has elements of [string] of undeclared shapes, but "));
    }
  }
  EXPECT_EQ(session().run(one.size(root_)).item<int64_t>(), 1);
}

TEST_F(QueueRunTest, APriorityIsAScalar) {
  const PriorityQueue queue(root_, 3, {kString}, {.name = "by_priority"});
  const Output text = ops::constant(root_, Tensor::scalar("text"));
  const Output two = ops::constant(root_, Tensor::of<int64_t>({1, 2}));
  EXPECT_THROW(queue.enqueue(root_, {two, text}), InvalidArgumentError);
  EXPECT_EQ(queue.dequeue(root_)[0].shape(), (Shape{}));
  const Output any = ops::placeholder(root_, kInt64);
  EXPECT_THROW(session().run(queue.enqueue(root_, {any, text}), {{any, Tensor::of<int64_t>({1, 2})}}),
               InvalidArgumentError);
}

TEST_F(QueueRunTest, ARunThatFailedHoldsNothing) {
  const auto bytes = std::make_shared<std::vector<float>>(2);
  const Tensor row = Tensor::wrap(kFloat, {1, 2}, bytes->data(), bytes);
  const Output rows = ops::placeholder(root_, kFloat, {-1, 2});
  const Operation enqueue = queue_.enqueue_many(root_, {rows});
  session().run(queue_.close(root_));
  EXPECT_THROW(session().run({Fetch(enqueue), Fetch(size_)}, {{rows, row}}), CancelledError);
  EXPECT_EQ(bytes.use_count(), 2) << "the test's, and the tensor's";
}

TEST_F(QueueRunTest, AHandleCannotBeFetched) {
  EXPECT_THROW(session().run(queue_.handle()), InvalidArgumentError);
}

TEST_F(QueueRunTest, NobodyWaitsBetweenTwoWrites) {
  const Variable v = ops::variable(root_, "v", floats({0, 0}));
  const Output one = ops::constant(root_, floats({1, 1}));
  const Operation first = ops::assign_add(root_, v, one).op();
  const Output late = queue_.dequeue(root_.with_control_dependencies({first}))[0];
  const Operation second = ops::assign_add(root_, v, late).op();
  session().run(v.initializer());
  try {
    session().run(second);
    FAIL() << "a run waits while snapshots wait for it";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("may block, and this run changes variables before and after it"));
  }
}

// A counter that a runner's thread counts, and a step that trains on what is dequeued.
TEST_F(QueueRunTest, ADueSummaryEatsNoBatch) {
  const Variable epoch = ops::variable(root_, "epoch", Tensor::scalar(int64_t{0}), {.trainable = false});
  const FIFOQueue epochs(root_, 10, {kInt64}, {.name = "epochs"});
  const Operation count = epochs.enqueue(root_, {ops::count_up_to(root_, epoch, 5)});
  const Variable v = ops::variable(root_, "v", floats({0, 0}));
  const Operation train = ops::assign_add(root_, v, element_).op();
  session().run({Fetch(epoch.initializer()), Fetch(v.initializer())});
  put({1, 2});
  put({3, 4});

  std::vector<std::vector<float>> seen;
  session().capabilities().step_fetching->request_step_fetch(
      {{element_}, [&](std::vector<Tensor> values, std::exception_ptr) { seen.push_back(values_of(values[0])); }});
  session().run(count);
  EXPECT_TRUE(seen.empty()) << "that is not the step which takes elements";
  EXPECT_EQ(size(), 2);
  session().run(train);
  EXPECT_THAT(seen, ElementsAre(std::vector<float>{1, 2}));
  EXPECT_EQ(size(), 1) << "the summary is of the step's own element";
  EXPECT_THAT(values_of(session().run(v)), ElementsAre(1, 2));
}

}  // namespace
}  // namespace longhaul

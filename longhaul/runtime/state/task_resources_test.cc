#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"

namespace longhaul {
namespace {

// Two sessions of one task, on one graph with a variable and a queue.
class TaskResourcesTest : public ::testing::Test {
 protected:
  std::unique_ptr<DirectSession> session() { return std::make_unique<DirectSession>(graph_, SessionOptions{}, task_); }
  std::future<Tensor> dequeue_in_background(Session& session) {
    return std::async(std::launch::async, [&session, this] { return session.run(element_); });
  }
  void wait_until_waiting(size_t calls) {
    const auto& queue = dynamic_cast<const Queue&>(*resource_of(queue_.handle().op(), task_->host_resources()));
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (queue.waiting() != calls && Clock::real().now() < deadline) std::this_thread::yield();
    ASSERT_EQ(queue.waiting(), calls);
  }

  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>();
  Graph graph_;
  Scope root_{graph_};
  Variable v_ = ops::variable(root_, "v", Tensor::scalar(2.f));
  Output add_ = ops::assign_add(root_, v_, ops::constant(root_, 1.f));
  FIFOQueue queue_{root_, 2, {kFloat}, {.shapes = {Shape{}}}};
  Operation enqueue_ = queue_.enqueue(root_, {ops::constant(root_, 7.f)});
  Output element_ = queue_.dequeue(root_)[0];
};

TEST_F(TaskResourcesTest, SessionsOfOneTaskShareTheirVariablesAndResources) {
  const auto one = session(), other = session();
  one->run(v_.initializer());
  other->run(add_);
  EXPECT_EQ(one->run(v_).item<float>(), 3);
  one->run(enqueue_);
  EXPECT_EQ(other->run(element_).item<float>(), 7);
}

TEST_F(TaskResourcesTest, ASessionThatClosesLeavesThemToTheOthers) {
  const auto one = session(), other = session();
  const Callable add = other->make_callable(add_);
  one->run(v_.initializer());
  one->run(enqueue_);
  one->close();
  EXPECT_THROW(one->run(v_), FailedPreconditionError);
  EXPECT_EQ(add()[0].item<float>(), 3);
  EXPECT_EQ(other->run(element_).item<float>(), 7);
}

TEST_F(TaskResourcesTest, ASessionThatClosesEndsItsOwnWaitsAlone) {
  const auto one = session(), other = session();
  auto ended = dequeue_in_background(*one);
  wait_until_waiting(1);
  auto waits = dequeue_in_background(*other);
  wait_until_waiting(2);
  one->close();
  EXPECT_THROW(ended.get(), CancelledError);
  other->run(enqueue_);
  EXPECT_EQ(waits.get().item<float>(), 7);
}

}  // namespace
}  // namespace longhaul

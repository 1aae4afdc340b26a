// Runs that their caller cancels: RunOptions::cancellation.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A variable v, and a queue from which runs wait for an element.
class RunCancellation : public ::testing::Test {
 protected:
  RunCancellation() {
    install_runtime();
    session_.run(v_.initializer());
  }

  // An operation that cancels the run, after those.
  Operation cancels_after(std::vector<Operation> operations) {
    return ops::host_function(root_.with_control_dependencies(std::move(operations)), {}, {kFloat},
                              [this](const std::vector<Tensor>&) {
                                caller_.cancel("its caller has gone");
                                return std::vector<Tensor>{Tensor::scalar(7.f)};
                              });
  }
  Output add_after(const Operation& operation) {
    return ops::assign_add(root_.with_control_dependencies({operation}), v_, ops::constant(root_, 1.f));
  }
  std::future<Tensor> start(const Fetch& fetch) {
    return std::async(std::launch::async, [this, fetch] { return session_.run(fetch, {}, options()); });
  }
  RunOptions options() { return {.cancellation = &caller_}; }
  void await_waiting(size_t calls) {
    const auto& queue = dynamic_cast<const Queue&>(*resource_of(queue_.handle().op(), task_->host_resources()));
    const Seconds end = Clock::real().now() + Seconds{60};
    while (queue.waiting() != calls && Clock::real().now() < end) std::this_thread::yield();
    ASSERT_EQ(queue.waiting(), calls);
  }
  void put_one() { session_.run(queue_.enqueue(root_, {ops::constant(root_, 1.f)})); }
  float v() { return session_.run(v_).item<float>(); }

  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>(TaskOptions{.job = "local0"});
  Graph graph_;
  Scope root_{graph_};
  Variable v_ = ops::variable(root_, "v", Tensor::scalar(0.f));
  FIFOQueue queue_{root_, 2, {kFloat}, {.shapes = {Shape{}}}};
  Output element_ = queue_.dequeue(root_)[0];
  Cancellation caller_;
  DirectSession session_{graph_, {}, task_};
};

TEST_F(RunCancellation, AWaitEndsAndOtherRunsGoOn) {
  auto waits = start(element_);
  auto other = std::async(std::launch::async, [this] { return session_.run(element_); });
  await_waiting(2);
  caller_.cancel("its caller has gone");
  EXPECT_THAT([&] { waits.get(); }, ThrowsMessage<CancelledError>(HasSubstr("its caller has gone")));
  await_waiting(1);
  put_one();
  EXPECT_EQ(other.get().item<float>(), 1);
}

TEST_F(RunCancellation, AStepThatIsCancelledBeforeItsWritesChangesNothing) {
  const Output step = add_after(element_.op());
  auto waits = start(step);
  await_waiting(1);
  caller_.cancel("its caller has gone");
  EXPECT_THROW(waits.get(), CancelledError);
  EXPECT_EQ(v(), 0);
  const Output after_cancel = add_after(cancels_after({}));
  EXPECT_THROW(session_.run(after_cancel, {}, options()), CancelledError);
  EXPECT_EQ(v(), 0);
  put_one();
  EXPECT_EQ(session_.run(step).item<float>(), 1);
}

TEST_F(RunCancellation, ACancelBetweenOperationsEndsARunThatWritesNothing) {
  const Output sum = ops::add(root_, cancels_after({}).output(), ops::constant(root_, 1.f));
  EXPECT_THROW(session_.run(sum, {}, options()), CancelledError);
  EXPECT_EQ(session_.run(sum).item<float>(), 8);  // without options it is nobody's
}

TEST_F(RunCancellation, AfterTheWritesARunEndsAsUsual) {
  const Operation late = cancels_after({add_after(ops::no_op(root_)).op()});
  EXPECT_EQ(session_.run(late.output(), {}, options()).item<float>(), 7);
  EXPECT_EQ(v(), 1);
}

TEST_F(RunCancellation, WhatWaitsAfterTheWritesSaysThatTheStepWasCommitted) {
  const Output late = queue_.dequeue(root_.with_control_dependencies({add_after(ops::no_op(root_)).op()}))[0];
  auto waits = start(late);
  await_waiting(1);
  caller_.cancel("its caller has gone");
  try {
    waits.get();
    ADD_FAILURE() << "it was not cancelled";
  } catch (const CancelledError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its caller has gone"));
    EXPECT_EQ(error.failed_step().fate, StepFate::kCommitted);
  }
  EXPECT_EQ(v(), 1);
}

TEST_F(RunCancellation, ARunThatComesTooLateDoesNotBegin) {
  put_one();
  caller_.cancel("its caller has gone");
  EXPECT_THROW(session_.run(element_, {}, options()), CancelledError);
  EXPECT_THROW(session_.run(add_after(ops::no_op(root_)), {}, options()), CancelledError);
  EXPECT_EQ(v(), 0);
  EXPECT_EQ(session_.run(element_).item<float>(), 1);
}

TEST_F(RunCancellation, TheSameRunMayBeMadeAgainWithoutItsFirstCaller) {
  put_one();
  put_one();
  {
    Cancellation first;
    session_.run(element_, {}, {.cancellation = &first});
  }
  EXPECT_EQ(session_.run(element_).item<float>(), 1);
}

}  // namespace
}  // namespace longhaul

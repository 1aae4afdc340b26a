// Sessions on a task, and what a reset of its containers leaves them.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Variables named `shared` in two containers, and a queue.
class SessionReset : public ::testing::Test {
 protected:
  SessionReset() { install_runtime(); }

  std::unique_ptr<DirectSession> session(const SessionOptions& options = {}) {
    return std::make_unique<DirectSession>(graph_, options, task_);
  }
  Output variable_in(const std::string& container, const std::string& name, const std::string& shared_name) {
    return root_
        .add("VariableV2", name, {},
             {{"dtype", kFloat}, {"shape", Shape{}}, {"container", container}, {"shared_name", shared_name}})
        .output();
  }
  Output assign(const Output& variable, float value) {
    return root_.add("Assign", "assign", {variable, ops::constant(root_, value)}, {}).output();
  }
  void await_waiting(size_t calls) {
    const auto& queue = dynamic_cast<const Queue&>(*resource_of(queue_.handle().op(), task_->host_resources()));
    const Seconds end = Clock::real().now() + Seconds{20};
    while (queue.waiting() != calls && Clock::real().now() < end) std::this_thread::yield();
    ASSERT_EQ(queue.waiting(), calls);
  }

  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>(TaskOptions{.job = "local0"});
  Graph graph_;
  Scope root_{graph_};
  Output v_ = variable_in("", "v", "");
  Output one_ = variable_in("test0", "one", "shared"), other_ = variable_in("test1", "other", "shared");
  Output same_ = variable_in("test1", "same", "shared");
  FIFOQueue queue_{root_, 2, {kFloat}, {.shapes = {Shape{}}}};
  Output element_ = queue_.dequeue(root_)[0];
};

TEST_F(SessionReset, VariablesAreFoundByContainerAndName) {  // WK-10
  const auto sess = session();
  sess->run(assign(one_, 1));
  sess->run(assign(other_, 2));
  EXPECT_EQ(sess->run(one_).item<float>(), 1);
  EXPECT_EQ(sess->run(same_).item<float>(), 2);
  sess->run(assign(v_, 3));
  EXPECT_EQ(task_->variables().slot(ResourceName{"local0", "v"})->read().to_host().item<float>(), 3);
}

TEST_F(SessionReset, NamesThatAreNoneAreRefused) {  // WK-10
  const auto sess = session();
  EXPECT_THAT([&] { sess->run(variable_in("a b", "x", "")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("container contains invalid characters")));
  EXPECT_THROW(sess->run(variable_in("/a", "y", "")), InvalidArgumentError);
  EXPECT_THROW(sess->run(variable_in("", "z", "_mine")), InvalidArgumentError);
  EXPECT_NO_THROW(sess->run(assign(variable_in("a.b-c/d", "_own", ""), 1)));
}

TEST_F(SessionReset, AContainerAloneIsEmptiedYetAllSessionsEnd) {  // SS-3
  const auto before = session();
  before->run({assign(one_, 1), assign(other_, 2)});
  task_->reset({"test0", "there is none"});
  EXPECT_THAT([&] { before->run(other_); }, ThrowsMessage<AbortedError>(HasSubstr("test0")));
  const auto after = session();
  EXPECT_THROW(after->run(one_), FailedPreconditionError);
  EXPECT_EQ(after->run(other_).item<float>(), 2);
  before->close();
  EXPECT_THROW(before->run(other_), FailedPreconditionError);
}

TEST_F(SessionReset, WithoutNamesAllContainersAreEmptied) {  // SS-3, unlike WK-9
  const auto before = session();
  before->run({assign(v_, 0), assign(one_, 1), assign(other_, 2)});
  task_->reset({});
  const auto after = session();
  for (const Output& variable : {v_, one_, other_}) EXPECT_THROW(after->run(variable), FailedPreconditionError);
}

TEST_F(SessionReset, IsolatedSessionsShareNothing) {  // SS-2, WK-11
  const auto shared = session(), one = session({.isolate_session_state = true}),
             other = session({.isolate_session_state = true});
  shared->run(assign(v_, 1));
  EXPECT_THROW(one->run(v_), FailedPreconditionError);
  one->run(assign(v_, 2));
  EXPECT_THROW(other->run(v_), FailedPreconditionError);
  EXPECT_EQ(shared->run(v_).item<float>(), 1);
  EXPECT_TRUE(one->capabilities().step_watching->sees_all_steps());
  one->close();
  EXPECT_EQ(session()->run(v_).item<float>(), 1);
  task_->reset({});
  EXPECT_THROW(other->run(v_), AbortedError);
}

TEST_F(SessionReset, AWaitOnAQueueEndsWithAnErrorThatSaysWhy) {
  const auto sess = session();
  auto waits = std::async(std::launch::async, [&] { return sess->run(element_); });
  await_waiting(1);
  task_->reset({});
  EXPECT_THAT([&] { waits.get(); }, ThrowsMessage<AbortedError>(HasSubstr("containers of the task were reset")));
}

TEST_F(SessionReset, AQueueThatIsGoneRefusesThoseWhoStillHoldIt) {
  const auto resource = resource_of(queue_.handle().op(), task_->host_resources());
  auto& queue = dynamic_cast<Queue&>(*resource);
  task_->reset({"local0"});
  EXPECT_THROW(queue.dequeue(), AbortedError);
  EXPECT_THROW(queue.enqueue({Tensor::scalar(1.f)}), AbortedError);
  EXPECT_NE(resource_of(queue_.handle().op(), task_->host_resources()), resource);
}

TEST_F(SessionReset, AReportNamesTheOperationsOfOneTask) {
  const auto sess = session();
  sess->run(assign(other_, 2));
  const Output here = root_.add("ReportUninitializedVariables", "here", {one_, same_}, {}).output();
  const Output there = root_.add("ReportUninitializedVariables", "there", {v_}, {}).output();
  const Output joined =
      root_.add("_JoinReports", "joined", {here, there}, {{"names", std::vector<std::string>{"v", "one", "same"}}})
          .output();
  const Tensor names = sess->run(joined);
  EXPECT_THAT(names.flat<std::string>(), ElementsAre("v", "one"));
}

TEST_F(SessionReset, TheDevicesOfATaskHaveItsNameAndOneIncarnation) {
  const auto devices = session()->list_devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "/job:local0/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(devices[0].device_type, "CPU");
  EXPECT_EQ(devices[0].memory_limit, 268435456);
  EXPECT_NE(devices[0].incarnation, 0u);
  EXPECT_EQ(session()->list_devices(), devices);
  EXPECT_NE(TaskResources().devices()[0].incarnation, devices[0].incarnation);
}

TEST_F(SessionReset, ASessionOfThisProcessListsItsDevices) {
  const auto sess = new_session("", graph_, {.device_count = {{"CPU", 2}}});
  const auto devices = sess->list_devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].name, "/job:localhost/replica:0/task:0/device:CPU:1");
  sess->close();
  EXPECT_THROW(sess->list_devices(), FailedPreconditionError);
}

TEST_F(SessionReset, ThisProcessIsATarget) {
  const auto sess = new_session("", graph_);
  sess->run(assign(v_, 1));
  const auto shared = session();
  shared->run(assign(v_, 2));
  Session::reset("");
  EXPECT_THROW(sess->run(v_), AbortedError);
  EXPECT_EQ(shared->run(v_).item<float>(), 2) << "its task is a server's";
  EXPECT_THROW(new_session("", graph_)->run(v_), FailedPreconditionError);
  sess->close();
  EXPECT_THAT([&] { sess->run(v_); }, ThrowsMessage<FailedPreconditionError>(HasSubstr("closed Session")));
}

TEST_F(SessionReset, AClosedSessionFreesItsVariablesThoughACallableHoldsThem) {
  const Variable large = ops::variable(root_, "large", Tensor(kFloat, {1 << 18}));
  DirectSession sess(graph_, {});
  sess.run(large.initializer());
  const Callable read = sess.make_callable(large);
  const VariableMemory memory = sess.resources().variables().memory();
  EXPECT_GT(memory.bytes_of_variables(), 0u);
  sess.close();
  EXPECT_EQ(memory.bytes_of_variables(), 0u);
  EXPECT_THROW(read(), FailedPreconditionError);
}

TEST_F(SessionReset, ATargetThatThereIsNotIsNamed) {
  EXPECT_THAT([] { Session::reset("grpc://nobody:2222"); },
              ThrowsMessage<NotFoundError>(HasSubstr("grpc://nobody:2222")));
}

TEST_F(SessionReset, AResetWakesWhoWaitsForAModel) {
  const uint64_t seen = task_->changes().generation();
  auto waits = std::async(std::launch::async, [&] { return task_->changes().wait(seen, Seconds{600}, nullptr); });
  task_->reset({"nothing in it"});
  EXPECT_NE(waits.get(), seen);
}

// Runs of many sessions beside resets: each run gives a value that was assigned after the last reset, or fails as a
// session does that was reset.
TEST_F(SessionReset, RunsRaceWithResets) {
  const Output set = assign(v_, 1), add = root_.add("AssignAdd", "add", {v_, ops::constant(root_, 1.f)}, {}).output();
  std::atomic<bool> stop{false};
  std::atomic<int> made{0}, aborted{0};
  const auto train = [&] {
    while (!stop) {
      const auto sess = session();
      try {
        sess->run(set);
        const Callable step = sess->make_callable(add);
        for (int i = 0; i < 50; ++i) step();
        ++made;
      } catch (const AbortedError&) {
        ++aborted;
      } catch (const FailedPreconditionError&) {  // compiled when the reset had emptied the container
        ++aborted;
      }
    }
  };
  std::thread one(train), other(train);
  const Seconds end = Clock::real().now() + Seconds{60};
  for (int round = 0; round < 40; ++round) {
    const auto witness = session();
    const int seen = made;
    while (made == seen && Clock::real().now() < end) std::this_thread::yield();
    task_->reset({});
    EXPECT_THROW(witness->run(v_), AbortedError);
  }
  stop = true;
  one.join();
  other.join();
  EXPECT_GE(made, 40);
  const auto after = session();
  task_->reset({});
  EXPECT_THROW(session()->run(v_), FailedPreconditionError);
}

}  // namespace
}  // namespace longhaul

// A step of two or three tasks, with each fault in each of its messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "longhaul/cluster/exchange/step_exchange.h"
#include "longhaul/cluster/exchange/step_sender.h"
#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/cluster/transport/peer_watch.h"

namespace longhaul {
namespace {

constexpr int64_t kFaultyStep = 3;
constexpr Seconds kStepTime{30};

// What a part does, in the order of the whole step.
struct PartAction {
  std::string task;
  enum { kSend, kReceive } kind;
  std::string peer;
  int32_t bundle;
};
using StepScript = std::vector<PartAction>;

StepScript two_tasks() {
  return {{kWorker, PartAction::kSend, kPs, 0},    {kWorker, PartAction::kSend, kPs, 1},
          {kPs, PartAction::kReceive, kWorker, 0}, {kPs, PartAction::kSend, kWorker, 2},
          {kPs, PartAction::kReceive, kWorker, 1}, {kWorker, PartAction::kReceive, kPs, 2}};
}

StepScript three_tasks() {
  return {{kWorker, PartAction::kSend, kPs, 0},    {kWorker, PartAction::kSend, kPs1, 1},
          {kPs, PartAction::kReceive, kWorker, 0}, {kPs, PartAction::kSend, kPs1, 2},
          {kPs1, PartAction::kReceive, kPs, 2},    {kPs1, PartAction::kReceive, kWorker, 1},
          {kPs1, PartAction::kSend, kWorker, 3},   {kWorker, PartAction::kReceive, kPs1, 3}};
}

// A busy machine makes simulated time pass while threads wait for a processor.
ExchangeOptions never_unclaimed() {
  return {.unclaimed = Seconds{1e9}};
}

// A process of a task.
struct TaskProcess {
  TaskProcess(SimulatedNetwork& network, const std::string& task)
      : transport(network.start(task)),
        exchange(std::make_shared<StepExchange>(network.clock(), never_unclaimed())),
        watched(*transport) {
    serve_deliver(*transport, exchange);
  }

  std::shared_ptr<Transport> transport;
  std::shared_ptr<StepExchange> exchange;
  Watched watched;
  bool is_dead = false;
};

// A task's part of the step, in the process that began it.
struct StepPart {
  std::shared_ptr<TaskProcess> process;
  std::unique_ptr<StepSender> sender;
  std::vector<std::unique_ptr<PeerWatch>> watches;
  std::exception_ptr error;
  std::map<int32_t, float> received;
};

// Runs a script once, as a worker would, and looks at what is left.
class StepUnderFaults {
 public:
  explicit StepUnderFaults(const StepScript& script) : script_(script) {
    network_.on_killed([this](const std::string& task) {
      processes_.at(task)->is_dead = true;
      processes_.at(task)->exchange->stop("its process was killed");
    });
    network_.on_restart([this](const std::string& task) { start(task); });
    for (const PartAction& action : script_) {
      if (!processes_.contains(action.task)) start(action.task);
    }
  }

  void plan(const NetworkFault& fault) { network_.plan(fault); }

  void run() {
    began_ = network_.clock().now();
    for (const auto& [task, process] : processes_) begin(task);
    for (const auto& [task, part] : parts_) watch_peers(task);
    for (const PartAction& action : script_) attempt(action.task, [&](StepPart& part) { act(part, action); });
    for (auto& [task, part] : parts_) attempt(task, [](StepPart& ending) { ending.sender->finish(); });
    took_ = network_.clock().now() - began_;
  }

  bool has_succeeded() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part.second.error == nullptr && !part.second.process->is_dead; });
  }

  void expect_each_value_once() {
    for (const PartAction& action : script_) {
      if (action.kind != PartAction::kReceive) continue;
      const auto& received = parts_.at(action.task).received;
      ASSERT_TRUE(received.contains(action.bundle)) << action.task << " lacks bundle " << action.bundle;
      EXPECT_EQ(received.at(action.bundle), static_cast<float>(action.bundle) + 0.5f);
    }
    for (const auto& [task, part] : parts_) {
      EXPECT_EQ(part.process->exchange->counts().delivered, static_cast<uint64_t>(bundles_for(task))) << task;
    }
  }

  // Of a part whose process lives: of the right class, and it names a task.
  void expect_good_errors() const {
    for (const auto& [task, part] : parts_) {
      if (part.error == nullptr || part.process->is_dead) continue;
      const Code code = code_of(part.error);
      EXPECT_TRUE(code == Code::kUnavailable || code == Code::kAborted || code == Code::kDeadlineExceeded)
          << code_name(code) << message_of(part.error);
      EXPECT_NE(message_of(part.error).find("/job:"), std::string::npos) << message_of(part.error);
    }
    EXPECT_LE(took_.count(), kStepTime.count() + 1);
  }

  void expect_no_value_twice() const {
    for (const auto& [task, part] : parts_) {
      EXPECT_LE(part.process->exchange->counts().delivered, static_cast<uint64_t>(bundles_for(task))) << task;
    }
  }

  void end_and_expect_nothing_left() {
    for (auto& [task, part] : parts_) {
      part.watches.clear();
      part.sender.reset();
      part.process->exchange->end(kFaultyStep);
    }
    network_.clock().run_until([] { return false; }, Seconds{20});
    EXPECT_EQ(network_.waiting(), 0u);
    for (const auto& process : all_) {
      EXPECT_EQ(process->transport->open_calls(), Transport::Open{}) << process->transport->task();
      const ExchangeCounts counts = process->exchange->counts();
      EXPECT_EQ(counts.bundles, 0u);
      EXPECT_EQ(counts.bytes, 0u);
      EXPECT_EQ(counts.unanswered, 0u);
      EXPECT_EQ(counts.steps, 0u);
    }
  }

  std::vector<SimulatedNetwork::Sent> sent() const { return network_.sent(); }

 private:
  void start(const std::string& task) {
    processes_[task] = std::make_shared<TaskProcess>(network_, task);
    all_.push_back(processes_[task]);
  }

  void begin(const std::string& task) {
    StepPart& part = parts_[task];
    part.process = processes_.at(task);
    part.process->exchange->begin(kFaultyStep);
    part.sender =
        std::make_unique<StepSender>(*part.process->transport, kFaultyStep, WaitLimits{.deadline = began_ + kStepTime});
  }

  // As the master does: a peer that is lost ends the step here.
  void watch_peers(const std::string& task) {
    StepPart& part = parts_.at(task);
    for (const auto& [peer, other] : parts_) {
      if (peer == task) continue;
      part.watches.push_back(std::make_unique<PeerWatch>(
          *part.process->transport, peer, other.process->transport->incarnation(), "",
          [exchange = part.process->exchange](std::exception_ptr error) { exchange->abort(kFaultyStep, error); }));
    }
  }

  // The first error of a living part ends the step everywhere.
  void attempt(const std::string& task, const std::function<void(StepPart&)>& act) {
    StepPart& part = parts_.at(task);
    if (part.error != nullptr || part.process->is_dead) return;
    try {
      act(part);
    } catch (const Error&) {
      part.error = std::current_exception();
    }
    if (part.error == nullptr || part.process->is_dead) return;
    for (auto& [other_task, other] : parts_) other.process->exchange->abort(kFaultyStep, part.error);
  }

  void act(StepPart& part, const PartAction& action) {
    if (action.kind == PartAction::kSend) {
      const uint64_t incarnation = parts_.at(action.peer).process->transport->incarnation();
      part.sender->send({action.peer, incarnation}, action.bundle,
                        {Tensor::scalar(static_cast<float>(action.bundle) + 0.5f)});
      return;
    }
    const WaitLimits limits{.deadline = began_ + kStepTime};
    const auto tensors = part.process->exchange->receive({kFaultyStep, action.bundle, action.peer}, limits);
    part.received[action.bundle] = tensors.at(0).item<float>();
  }

  int bundles_for(const std::string& task) const {
    return static_cast<int>(std::count_if(script_.begin(), script_.end(), [&](const PartAction& action) {
      return action.kind == PartAction::kReceive && action.task == task;
    }));
  }

  const StepScript script_;
  SimulatedNetwork network_{{.through_bytes = true}};
  std::map<std::string, std::shared_ptr<TaskProcess>> processes_;
  std::vector<std::shared_ptr<TaskProcess>> all_;  // the dead ones, too
  std::map<std::string, StepPart> parts_;
  Seconds began_{0}, took_{0};
};

bool is_about_a_kill(NetworkFault::Kind kind) {
  return kind == NetworkFault::Kind::kKillSenderBefore || kind == NetworkFault::Kind::kKillSenderAfter ||
         kind == NetworkFault::Kind::kKillReceiverBefore || kind == NetworkFault::Kind::kKillReceiverAfter;
}

// Without a death, what is lost of a delivery is sent again. A lost watch ends the step, as it should.
bool must_succeed(const NetworkFault& fault, const SimulatedNetwork::Sent& message) {
  if (is_about_a_kill(fault.kind)) return false;
  const bool may_lose = fault.kind == NetworkFault::Kind::kLose || fault.kind == NetworkFault::Kind::kLoseReply;
  return !may_lose || message.method == "Deliver";
}

int run_with_each_fault(const StepScript& script) {
  StepUnderFaults without(script);
  without.run();
  EXPECT_TRUE(without.has_succeeded());
  without.expect_each_value_once();
  without.end_and_expect_nothing_left();
  const auto messages = without.sent();
  int failed = 0;
  for (uint64_t i = 1; i <= messages.size(); ++i) {
    for (const NetworkFault::Kind kind : all_network_faults()) {
      const NetworkFault fault{.kind = kind, .message = i, .time = Seconds{1}};
      SCOPED_TRACE(to_string(fault) + ", " + messages[i - 1].method + (messages[i - 1].is_reply ? "'s reply" : ""));
      StepUnderFaults step(script);
      step.plan(fault);
      step.run();
      EXPECT_TRUE(step.has_succeeded() || !must_succeed(fault, messages[i - 1]));
      if (step.has_succeeded()) step.expect_each_value_once();
      if (!step.has_succeeded()) ++failed;
      step.expect_no_value_twice();
      step.expect_good_errors();
      step.end_and_expect_nothing_left();
    }
  }
  return failed;
}

TEST(ExchangeFaults, EachFaultInEachMessageOfTwoTasks) {
  EXPECT_GT(run_with_each_fault(two_tasks()), 0);
}

TEST(ExchangeFaults, EachFaultInEachMessageOfThreeTasks) {
  EXPECT_GT(run_with_each_fault(three_tasks()), 0);
}

// Two parts that wait for each other, each on a thread of its own.
TEST(ExchangeOnThreads, StepsGoBackAndForth) {
  constexpr int64_t kSteps = 50;
  SimulatedNetwork network({.threads = SimulatedClock::Threads::kSeveral});
  TaskProcess ps(network, kPs), worker(network, kWorker);
  const WaitLimits limits{.deadline = network.clock().now() + Seconds{2 * 3600}};
  const auto play = [&](TaskProcess& self, TaskProcess& other, bool begins) {
    int good = 0;
    const std::string& peer = other.transport->task();
    for (int64_t step = 1; step <= kSteps; ++step) {
      StepSender sender(*self.transport, step, limits);
      const auto send = [&](int32_t bundle) {
        sender.send({peer, other.transport->incarnation()}, bundle, {Tensor::scalar(static_cast<float>(step))});
      };
      if (begins) send(0);
      const auto tensors = self.exchange->receive({step, begins ? 1 : 0, peer}, limits);
      if (tensors.at(0).item<float>() == static_cast<float>(step)) ++good;
      if (!begins) send(1);
      sender.finish();
      self.exchange->end(step);
    }
    return good;
  };
  int of_worker = 0, of_ps = 0;
  std::thread one([&] { of_worker = play(worker, ps, true); });
  std::thread other([&] { of_ps = play(ps, worker, false); });
  one.join();
  other.join();
  EXPECT_EQ(of_worker, kSteps);
  EXPECT_EQ(of_ps, kSteps);
  EXPECT_EQ(ps.exchange->counts().delivered, static_cast<uint64_t>(kSteps));
  EXPECT_EQ(worker.transport->open_calls(), Transport::Open{});
}

}  // namespace
}  // namespace longhaul

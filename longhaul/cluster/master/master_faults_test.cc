// A session that trains, takes a snapshot and is closed, with each fault in each of its messages.
#include <functional>
#include <set>
#include <utility>

#include "longhaul/cluster/master/cluster_session_fixture.h"

namespace longhaul {
namespace {

constexpr Seconds kRunTime{30};
constexpr Seconds kGrace{1.6};  // for what an error looks for: its cause, its outcome, a death

bool kills(NetworkFault::Kind kind) {
  return kind == NetworkFault::Kind::kKillSenderBefore || kind == NetworkFault::Kind::kKillSenderAfter ||
         kind == NetworkFault::Kind::kKillReceiverBefore || kind == NetworkFault::Kind::kKillReceiverAfter;
}

// The script, once.
class TrainingUnderFaults : public ClusterSessionTest {
 public:
  // The master is worker 0, or a client, whose session's home is worker 0.
  explicit TrainingUnderFaults(bool from_client = false) {
    start_all();
    if (from_client) client_ = network_.start("/job:longhaul_client/replica:0/task:0");
    network_.on_killed([this](const std::string& task) {
      toys_.erase(task);
      killed_.insert(task);
    });
  }

  void TestBody() override {}
  void plan(const NetworkFault& fault) { network_.plan(fault); }
  std::vector<SimulatedNetwork::Sent> sent() { return network_.sent(); }

  void run() {
    Transport& transport = client_ != nullptr ? *client_ : toy(kWorker).transport();  // of a process that may be killed
    ClusterSessionOptions options = ClusterSessionTest::options();
    options.home = kWorker;
    options.session.operation_timeout = kRunTime;
    ClusterSession session(graph_, transport, options);
    for (int i = 0; i < 3; ++i) attempt([&] { session.run(train_); }, /*is_step=*/true);
    attempt([&] { look(session); }, /*is_step=*/false);
    attempt([&] { session.run(add_v_); }, /*is_step=*/false);
    const Seconds began = now();
    session.close();
    EXPECT_LE((now() - began).count(), 10.1);
  }

  bool has_succeeded() const { return failed_ == 0; }

  // A moment of a snapshot is between two steps, and each step was made on both tasks or on none.
  void expect_consistent() {
    pass(Seconds{30});
    for (const auto& [v, w] : looks_) EXPECT_EQ(v, w);
    if (killed_.contains(kPs) || killed_.contains(kPs1)) return;
    std::set<int64_t> joint = toy(kPs).committed;
    for (const int64_t step : toy(kPs1).committed) EXPECT_TRUE(joint.contains(step)) << "a step of ps 1 alone";
    const int64_t steps = toy(kPs1).counts["w"];
    EXPECT_GE(steps, committed_);
    EXPECT_LE(steps, committed_ + unknown_);
    EXPECT_GE(toy(kPs).counts["v"], steps);
    EXPECT_LE(toy(kPs).counts["v"], steps + 1);  // add_v
    if (has_succeeded()) {
      EXPECT_EQ(toy(kPs).counts["v"], 4);
    }
  }

  // Whatever has happened, once the tasks are back a new session goes on.
  void expect_a_new_session_goes_on() {
    const int64_t v = toy(kPs).counts["v"], w = toy(kPs1).counts["w"];
    const auto next = session();
    next->run(train_);
    EXPECT_EQ(toy(kPs).counts["v"], v + 1);
    EXPECT_EQ(toy(kPs1).counts["w"], w + 1);
    next->close();
    expect_nothing_left();
  }

 private:
  void look(ClusterSession& session) {
    const auto values = session.run({read_v_, read_w_}, {}, {.snapshot = true});
    looks_.emplace_back(values.at(0).item<int64_t>(), values.at(1).item<int64_t>());
  }

  void attempt(const std::function<void()>& act, bool is_step) {
    const Seconds began = now();
    try {
      act();
      committed_ += is_step ? 1 : 0;
    } catch (const Error& error) {
      ++failed_;
      expect_good(error);
      if (is_step) count_outcome(error.what());
    }
    EXPECT_LE((now() - began).count(), (kRunTime + kGrace).count());
  }

  static void expect_good(const Error& error) {
    const Code code = error.code();
    EXPECT_TRUE(code == Code::kAborted || code == Code::kUnavailable || code == Code::kDeadlineExceeded)
        << code_name(code) << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("/job:"), std::string::npos) << error.what();
  }

  // An error without a word about it came before the step began.
  void count_outcome(const std::string& text) {
    if (text.find("The step was committed") != std::string::npos) {
      ++committed_;
    } else if (text.find("Whether the step was committed is not known") != std::string::npos) {
      ++unknown_;
    }
  }

  std::shared_ptr<Transport> client_;
  std::set<std::string> killed_;
  std::vector<std::pair<int64_t, int64_t>> looks_;
  int failed_ = 0;
  int64_t committed_ = 0, unknown_ = 0;
};

// What a broken line loses is asked for again; a watch that is lost ends the session, as it should.
bool must_succeed_with(const NetworkFault& fault, const SimulatedNetwork::Sent& message) {
  if (kills(fault.kind)) return false;
  const bool may_lose = fault.kind == NetworkFault::Kind::kLose || fault.kind == NetworkFault::Kind::kLoseReply;
  return !may_lose || message.method != "Watch";
}

void expect_whole_steps_whatever_is_lost(bool from_client) {
  std::vector<SimulatedNetwork::Sent> messages;
  {
    TrainingUnderFaults without(from_client);
    without.run();
    EXPECT_TRUE(without.has_succeeded());
    messages = without.sent();
    without.expect_consistent();
    without.expect_a_new_session_goes_on();
  }
  ASSERT_GE(messages.size(), 50u);
  int failed = 0;
  for (uint64_t i = 1; i <= messages.size(); ++i) {
    for (const NetworkFault::Kind kind : all_network_faults()) {
      const NetworkFault fault{.kind = kind, .message = i, .time = Seconds{1}};
      const SimulatedNetwork::Sent& message = messages[i - 1];
      SCOPED_TRACE(to_string(fault) + ", " + message.method + (message.is_reply ? "'s reply, " : ", ") + message.from +
                   " to " + message.to);
      TrainingUnderFaults training(from_client);
      training.plan(fault);
      training.run();
      EXPECT_TRUE(training.has_succeeded() || !must_succeed_with(fault, message));
      if (!training.has_succeeded()) ++failed;
      training.expect_consistent();
      training.expect_a_new_session_goes_on();
    }
  }
  EXPECT_GT(failed, 20);
}

TEST(MasterFaults, AStepIsMadeOnAllTasksOrOnNoneWhateverIsLost) {
  expect_whole_steps_whatever_is_lost(/*from_client=*/false);
}

TEST(MasterFaults, AClientIsAMasterLikeAnyOther) {  // unlike MA-14, unlike MA-15
  expect_whole_steps_whatever_is_lost(/*from_client=*/true);
}

// The line of a task is cut for longer than a keep-alive lasts: its session is lost, its state lives.
TEST(MasterFaults, ALongCutLosesTheSessionAndNoStep) {
  std::vector<SimulatedNetwork::Sent> messages;
  {
    TrainingUnderFaults without;
    without.run();
    messages = without.sent();
    without.expect_consistent();
  }
  for (uint64_t i = 1; i <= messages.size(); ++i) {
    for (const NetworkFault::Kind kind : {NetworkFault::Kind::kCut, NetworkFault::Kind::kCutOneWay}) {
      const NetworkFault fault{.kind = kind, .message = i, .time = Seconds{10}};
      SCOPED_TRACE(to_string(fault) + ", " + messages[i - 1].method);
      TrainingUnderFaults training;
      training.plan(fault);
      training.run();
      training.expect_consistent();
      training.expect_a_new_session_goes_on();
    }
  }
}

}  // namespace
}  // namespace longhaul

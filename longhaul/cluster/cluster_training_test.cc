// Masters and workers together: graphs that run on several tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "longhaul/cluster/master/taken_snapshot.h"
#include "longhaul/cluster/tasks/task_changes.h"
#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/ops/input/data_position.h"
#include "longhaul/ops/ops.h"
#include "longhaul/ops/replica_device_setter.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const char kPsDevice[] = "/job:ps/task:0", kPs1Device[] = "/job:ps/task:1";

// A linear regression, on two ps tasks and the own one, or with `local` in one process.
struct Regression {
  explicit Regression(bool local) {
    const Scope on0 = local ? root : root.with_device(kPsDevice), on1 = local ? root : root.with_device(kPs1Device);
    weights = ops::variable(on0, "weights", Tensor::of<float>({2, 1}, {0.5f, -0.25f}));
    bias = ops::variable(on1, "bias", Tensor::of<float>({0.125f}));
    step = ops::create_global_step(on0);
    x = ops::placeholder(root, kFloat, {3, 2}, "x");
    y = ops::placeholder(root, kFloat, {3, 1}, "y");
    const Output predicted = ops::add(root, ops::matmul(root, x, weights), bias);
    loss = ops::mean(root, ops::square(root, ops::sub(root, predicted, y)));
    train = GradientDescentOptimizer(0.1).minimize(loss, step);
    init = ops::global_variables_initializer(root);
  }

  Feeds batch(int i) const {
    const float f = static_cast<float>(i);
    return {{x, Tensor::of<float>({3, 2}, {1, f / 7, -2, 0.5f, f / 3, 1})}, {y, Tensor::of<float>({3, 1}, {f, 1, 2})}};
  }

  Graph graph;
  Scope root{graph};
  Variable weights, bias, step;
  Output x, y, loss;
  Operation train, init;
};

// A step adds 1 to `a`, and to `b` what `a` was, and 1: so b = a (a + 1) / 2 between two steps.
struct Counting {
  Graph graph;
  Scope root{graph};
  Scope on0 = root.with_device(kPsDevice), on1 = root.with_device(kPs1Device);
  Variable a = ops::variable(on0, "a", Tensor::scalar(0.f)), b = ops::variable(on1, "b", Tensor::scalar(0.f));
  Operation train = ops::group(
      root,
      {ops::assign_add(on0, a, ops::constant(on0, 1.f)).op(), ops::assign_add(on1, b, ops::add(on1, a, 1.0)).op()},
      "train");
  Operation init = ops::global_variables_initializer(root);
  Output read_a = ops::identity(on0, a, "read_a"), read_b = ops::identity(on1, b, "read_b");

  std::pair<float, float> look(Session& session) const {
    const std::vector<Tensor> values = session.run({read_a, read_b}, {}, {.snapshot = true});
    return {values[0].item<float>(), values[1].item<float>()};
  }
};

void expect_between_two_steps(const std::pair<float, float>& look) {
  EXPECT_EQ(look.second, look.first * (look.first + 1) / 2) << look.first;
}

class ClusterTrainingTest : public ::testing::Test {
 protected:
  Seconds now() { return cluster_.clock().now(); }
  void expect_nothing_left() { EXPECT_TRUE(cluster_.nothing_is_left(Seconds{60})); }

  TrainingCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

TEST_F(ClusterTrainingTest, ItTrainsAsInOneProcessBitForBit) {  // MA-18
  const Regression spread(/*local=*/false), local(/*local=*/true);
  const auto cluster = cluster_.session(spread.root.graph());
  const auto process = new_session("", local.root.graph());
  cluster->run(spread.init);
  process->run(local.init);
  for (int i = 0; i < 10; ++i) {
    const float loss = cluster->run({spread.loss, spread.train}, spread.batch(i))[0].item<float>();
    EXPECT_EQ(loss, (process->run({local.loss, local.train}, local.batch(i))[0].item<float>()));
  }
  const auto there = cluster->run({spread.weights, spread.bias, spread.step});
  const auto here = process->run({local.weights, local.bias, local.step});
  for (size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(identical(there[i], here[i])) << there[i].to_string();
  EXPECT_EQ(there[2].item<int64_t>(), 10);
  cluster->close();
  expect_nothing_left();
}

// The rate depends on the step's number of before, which is on another task than one of the averages.
TEST_F(ClusterTrainingTest, MovingAveragesOfVariablesOnSeveralTasks) {
  struct Averaged : Regression {
    explicit Averaged(bool local) : Regression(local) {
      const Operation update = averages.apply(root.with_control_dependencies({train}), {weights, bias});
      averaged = ops::group(root, {update}, "averaged");
      init_all = ops::global_variables_initializer(root);
    }
    ExponentialMovingAverage averages{0.9, {.num_updates = step}};
    Operation averaged, init_all;
  };
  const Averaged spread(/*local=*/false), local(/*local=*/true);
  const auto cluster = cluster_.session(spread.root.graph());
  const auto process = new_session("", local.root.graph());
  cluster->run(spread.init_all);
  process->run(local.init_all);
  for (int i = 0; i < 10; ++i) {
    cluster->run(spread.averaged, spread.batch(i));
    process->run(local.averaged, local.batch(i));
  }
  for (const auto variable : {&Averaged::weights, &Averaged::bias}) {
    const Tensor there = cluster->run(spread.averages.average(spread.*variable)->ref());
    const Tensor here = process->run(local.averages.average(local.*variable)->ref());
    EXPECT_TRUE(identical(there, here)) << there.to_string() << " and " << here.to_string();
  }
}

// The position lies with the variables, and the loader is the worker's own.
TEST_F(ClusterTrainingTest, ALoadersPositionOnAnotherTask) {
  const auto loader = std::make_shared<DataLoader>(
      make_dataset(10, [](int64_t i) { return Example{Tensor::scalar(static_cast<float>(i))}; }),
      DataLoaderOptions{.batch_size = 2, .seed = 3});
  struct Loaded {
    explicit Loaded(const std::shared_ptr<DataLoader>& loader, bool local) {
      const Scope placed = local ? root : root.with_device(replica_device_setter({.ps_tasks = 2}));
      input = ops::load_batch(placed, loader);
      sum = ops::variable(placed, "sum", Tensor::scalar(0.f), {.trainable = false});
      const Output added = ops::assign_add(placed, sum, ops::sum(placed, input.components[0]));
      train = ops::group(root, {added.op(), input.advance});
      init = ops::global_variables_initializer(root);
    }
    Graph graph;
    Scope root{graph};
    ops::LoadedBatch input;
    Variable sum;
    Operation train, init;
  };
  Loaded spread(loader, /*local=*/false), local(loader, /*local=*/true);
  const auto cluster = cluster_.session(spread.graph);
  const auto process = new_session("", local.graph);
  cluster->run(spread.init);
  process->run(local.init);
  for (int i = 0; i < 7; ++i) {
    cluster->run(spread.train);
    process->run(local.train);
    EXPECT_EQ(cluster->run(spread.sum).item<float>(), process->run(local.sum).item<float>()) << i;
  }
  EXPECT_EQ(cluster->run(spread.input.position).item<int64_t>(), 14);
}

TEST_F(ClusterTrainingTest, AReportOnVariablesOfSeveralTasksIsThatOfOne) {
  Counting model;
  const std::vector<VariableInfo> variables = ops::global_variables(model.graph);
  const Output missing = ops::report_uninitialized_variables(model.root, variables, "missing");
  const Output after =
      ops::report_uninitialized_variables(model.root.with_control_dependencies({model.init}), variables, "after");
  const auto session = cluster_.session(model.graph);
  const auto names = [&](const Output& report) {
    const Tensor value = session->run(report);
    const auto all = value.flat<std::string>();
    return std::vector<std::string>(all.begin(), all.end());
  };
  EXPECT_THAT(names(missing), ElementsAre("a", "b"));
  session->run(model.b.initializer());
  EXPECT_THAT(names(missing), ElementsAre("a"));
  EXPECT_THAT(names(after), IsEmpty());
  EXPECT_THAT(names(missing), IsEmpty());
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterTrainingTest, ItsStepsAreWatched) {
  const Regression model(/*local=*/false);
  const auto session = cluster_.session(model.root.graph());
  StepWatching& watching = *session->capabilities().step_watching;
  EXPECT_FALSE(watching.sees_all_steps());
  std::vector<int64_t> seen;
  const auto watch = watching.watch_steps({.step = model.step, .every = 2, .passed = [&] {
                                             EXPECT_TRUE(watching.is_step_under_way());
                                             seen.push_back(session->run(model.step).item<int64_t>());
                                           }});
  session->run(model.init);
  for (int i = 0; i < 5; ++i) session->run(model.train, model.batch(i));
  EXPECT_THAT(seen, ElementsAre(2, 4));
  EXPECT_FALSE(watching.is_step_under_way());
  EXPECT_THROW(static_cast<void>(watching.watch_steps({.step = model.loss})), InvalidArgumentError);
  EXPECT_TRUE(cluster_.session(model.root.graph(), {.isolate_session_state = true})
                  ->capabilities()
                  .step_watching->sees_all_steps());
}

TEST_F(ClusterTrainingTest, ATraceHasTheOperationsOfAllTasksByTheirDevices) {  // SS-18
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  proto::RunMetadata metadata;
  session->run(model.train, {}, {.trace_level = TraceLevel::kFullTrace}, &metadata);
  std::map<std::string, std::set<std::string>> types;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      EXPECT_GT(node.all_start_nanos(), int64_t{1'500'000'000} * 1'000'000'000) << "a time since 1970";
      const std::string& label = node.timeline_label();  // "x/_recv_3 = _Recv()"
      const size_t type = label.find(" = ") + 3;
      types[device.device()].insert(label.substr(type, label.find('(') - type));
    }
  }
  ASSERT_EQ(types.size(), 2u);
  EXPECT_TRUE(types[kPs + "/device:CPU:0"].contains("_Send"));
  EXPECT_TRUE(types[kPs1 + "/device:CPU:0"].contains("_Recv"));
  EXPECT_TRUE(types[kPs1 + "/device:CPU:0"].contains("AssignAdd"));
  EXPECT_EQ(model.look(*session), std::pair(1.f, 1.f));
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterTrainingTest, AStepOfOnePsTakesThreeCallsAtMost) {
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  session->run(model.train);
  const size_t before = cluster_.network().calls(kWorker, kPs) + cluster_.network().calls(kPs1, kPs);
  session->run(model.train);
  EXPECT_LE(cluster_.network().calls(kWorker, kPs) + cluster_.network().calls(kPs1, kPs), before + 3);
}

TEST_F(ClusterTrainingTest, SnapshotsBesideTrainingAndOneAnotherAreBetweenTwoSteps) {
  Counting model, other, third;
  const auto training = cluster_.session(model.graph);
  const auto saving = cluster_.session(other.graph, {}, TrainingCluster::tasks().back());
  training->run(model.init);
  std::atomic<bool> is_over = false;
  std::atomic<int> steps = 0;
  std::thread trainer([&] {
    const SimulatedClock::AtWork work(cluster_.clock());
    EXPECT_EQ(coded_error_of([&] {
                for (; !is_over; ++steps) training->run(model.train);
              }),
              "");
  });
  const auto looking = cluster_.session(third.graph);
  std::thread looker([&] {
    const SimulatedClock::AtWork work(cluster_.clock());
    EXPECT_EQ(coded_error_of([&] {
                while (!is_over) expect_between_two_steps(third.look(*looking));
              }),
              "");
  });
  std::pair<float, float> last{0, 0};
  const auto save = [&] {
    for (int i = 0; i < 20; ++i) {
      const auto look = other.look(*saving);
      expect_between_two_steps(look);
      EXPECT_GE(look.first, last.first);
      last = look;
    }
  };
  EXPECT_EQ(coded_error_of(save), "");
  is_over = true;
  trainer.join();
  looker.join();
  EXPECT_EQ(other.look(*saving).first, static_cast<float>(steps));
  looking->close();
  training->close();
  saving->close();
  expect_nothing_left();
}

TEST_F(ClusterTrainingTest, ASnapshotMayStayOnItsTasksWhileTrainingGoesOn) {
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  auto taken = session->take_on_tasks({model.read_b, model.read_a});
  EXPECT_EQ(taken->values(), (std::vector<TakenSnapshot::Value>{{kPs1, "read_b:0"}, {kPs, "read_a:0"}}));
  EXPECT_EQ(taken->global_step(), std::nullopt);
  session->run(model.train);
  taken->renew({});
  taken = nullptr;
  expect_between_two_steps(model.look(*session));
}

TEST_F(ClusterTrainingTest, AnErrorNamesItsTaskAndOperation) {  // SG-3
  Counting model;
  const auto session = cluster_.session(model.graph);
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { session->run(model.train); }),
              ::testing::AllOf(StartsWith("From /job:ps/"), HasSubstr("Attempting to use uninitialized value")));
  session->run(model.init);
  session->run(model.train);
  expect_between_two_steps(model.look(*session));
}

TEST_F(ClusterTrainingTest, AValueWrittenOnOneTaskCannotBeWrittenOnAnother) {
  Counting model;
  const Output written = ops::assign_add(model.on0, model.a, ops::constant(model.on0, 1.f), "first");
  const Output late = ops::assign(model.on1, model.b, written, "second");
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  EXPECT_NE(refusal_of([&] { session->run(late.op()); }), "");
  EXPECT_EQ(model.look(*session).first, 0.f);
}

TEST_F(ClusterTrainingTest, VariablesLiveOnTheTasksUnlessTheSessionIsolatesThem) {  // SS-1, SS-2, SS-13
  Counting model;
  const auto first = cluster_.session(model.graph);
  first->run(model.init);
  first->run(model.train);
  first->close();
  const auto second = cluster_.session(model.graph);
  EXPECT_EQ(model.look(*second).first, 1.f);
  const auto isolated = cluster_.session(model.graph, {.isolate_session_state = true});
  EXPECT_THROW(model.look(*isolated), FailedPreconditionError);
  isolated->run(model.init);
  EXPECT_EQ(model.look(*isolated).first, 0.f);
  EXPECT_EQ(model.look(*second).first, 1.f);
}

TEST_F(ClusterTrainingTest, AVariableThatIsDeclaredOtherwiseIsRefused) {
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  for (const Tensor& value : {Tensor::scalar(int64_t{9}), Tensor::of(Shape({2}), std::vector<float>{1, 2})}) {
    Graph graph;
    const Scope there = Scope(graph).with_device(kPsDevice);
    const Variable other = ops::variable(there, "a", value);
    const auto of_other = cluster_.session(graph);
    for (const Operation& op : {other.initializer(), ops::identity(there, other).op()}) {
      EXPECT_THAT(error_of<InvalidArgumentError>([&] { of_other->run(op); }),
                  AllOf(HasSubstr("variable a is float of shape [] on this task"), HasSubstr("declare it alike")));
    }
  }
  EXPECT_EQ(model.look(*session).first, 0.f);
}

TEST_F(ClusterTrainingTest, AfterTheDeathOfAPsANewSessionFindsItEmpty) {
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  session->run(model.train);
  cluster_.network().kill(kPs1);
  cluster_.clock().settle();
  const Seconds began = now();
  EXPECT_THROW(session->run(model.train), AbortedError);
  EXPECT_LE((now() - began).count(), 2);
  cluster_.start(kPs1);
  const auto next = cluster_.session(model.graph);
  EXPECT_EQ(next->run(model.read_a).item<float>(), 1.f);
  EXPECT_THROW(next->run(model.read_b), FailedPreconditionError);
  next->run(model.init);
  next->run(model.train);
  expect_between_two_steps(model.look(*next));
  session->close();
  next->close();
  expect_nothing_left();
}

TEST_F(ClusterTrainingTest, AnInitialisationElsewhereEndsTheWaitForIt) {
  Counting model, other;
  const auto waiting = cluster_.session(model.graph), chief = cluster_.session(other.graph);
  const auto is_ready = [&] {
    try {
      model.look(*waiting);
      return true;
    } catch (const FailedPreconditionError&) {
      return false;
    }
  };
  EXPECT_FALSE(is_ready());
  const auto changes = waiting->changes();
  std::thread initialising([&] {
    const SimulatedClock::AtWork work(cluster_.clock());
    EXPECT_EQ(coded_error_of([&] { chief->run(other.init); }), "");
  });
  const Seconds end = now() + Seconds{60};
  bool ready = false;
  const auto wait = [&] {
    while (!(ready = is_ready()) && now() < end) changes->wait(end);
  };
  EXPECT_EQ(coded_error_of(wait), "");
  EXPECT_TRUE(ready);
  initialising.join();
}

// Neither Commit, or neither answer to one, gets through: so the master cannot know, and finds it out later.
TEST_F(ClusterTrainingTest, WhetherAStepWasCommittedIsFoundOutLater) {
  for (const bool arrives : {false, true}) {
    SCOPED_TRACE(arrives);
    Counting model;
    const auto session = cluster_.session(model.graph);
    session->run(model.init);
    for (const std::string& ps : {kPs, kPs1}) {
      cluster_.network().plan(
          {.kind = NetworkFault::Kind::kCut,
           .time = Seconds{8},
           .of = MessageKind{
               .from = arrives ? ps : kWorker, .to = arrives ? kWorker : ps, .method = "Commit", .is_reply = arrives}});
    }
    FailedStep failed;
    try {
      session->run(model.train);
    } catch (const AbortedError& error) {
      failed = error.failed_step();
      EXPECT_THAT(error.what(), HasSubstr("Whether the step was committed is not known."));
    }
    EXPECT_EQ(failed.fate, StepFate::kNotKnown);
    session->close();
    EXPECT_EQ(session->capabilities().step_fates->find_fate(failed.id, Seconds{30}),
              arrives ? StepFate::kCommitted : StepFate::kNotCommitted);
    EXPECT_EQ(session->capabilities().step_fates->find_fate(failed.id + 1, Seconds{30}), StepFate::kNotKnown);
    EXPECT_EQ(model.look(*cluster_.session(model.graph)).first, arrives ? 1.f : 0.f);
  }
}

TEST_F(ClusterTrainingTest, ATaskThatIsToStopTellsTheSessionsThatAsked) {
  Counting model, other;
  const auto session = cluster_.session(model.graph), late = cluster_.session(other.graph);
  Mutex mutex;
  std::vector<StopNotice> told;
  const auto note = [&](const StopNotice& notice) {
    MutexLock lock(mutex);
    told.push_back(notice);
  };
  const auto number = [&] {
    MutexLock lock(mutex);
    return told.size();
  };
  auto notices = session->capabilities().stop_noticing->notice_stops(note);
  session->run(model.init);
  cluster_.announce_stop(kPs1, Seconds{30});
  ASSERT_TRUE(cluster_.clock().run_until([&] { return number() == 1; }, Seconds{5}));
  EXPECT_EQ(told[0].task, kPs1);
  EXPECT_NEAR(told[0].grace.count(), 30, 1);
  session->run(model.train);  // all goes on
  other.look(*late);
  auto late_notices = late->capabilities().stop_noticing->notice_stops(note);
  ASSERT_TRUE(cluster_.clock().run_until([&] { return number() == 2; }, Seconds{5}));
  EXPECT_LE(told[1].grace.count(), 30);
  notices.reset();
  late_notices.reset();
  session->close();
  late->close();
  expect_nothing_left();
}

TEST_F(ClusterTrainingTest, AResetEmptiesTheTasks) {
  Counting model;
  const auto session = cluster_.session(model.graph);
  session->run(model.init);
  const auto asking = cluster_.network().start("/job:client/replica:0/task:0");
  reset_tasks(*asking, {kPs, kPs1}, {}, {});
  EXPECT_TRUE(cluster_.clock().run_until(
      [&] {
        try {
          session->run(model.read_a);
        } catch (const AbortedError&) {
          return true;
        }
        return false;
      },
      Seconds{5}));
  EXPECT_THROW(model.look(*cluster_.session(model.graph)), FailedPreconditionError);
}

bool is_a_death(NetworkFault::Kind kind) {
  return kind == NetworkFault::Kind::kKillSenderBefore || kind == NetworkFault::Kind::kKillSenderAfter ||
         kind == NetworkFault::Kind::kKillReceiverBefore || kind == NetworkFault::Kind::kKillReceiverAfter;
}

// Three steps and a snapshot, with a fault in one of their messages; how many messages there were.
uint64_t train_under(const NetworkFault* fault) {
  TrainingCluster cluster;
  const SimulatedClock::AtWork work(cluster.clock());
  Counting model;
  {
    const auto session = cluster.session(model.graph);
    session->run(model.init);
    session->close();
  }
  const uint64_t before = cluster.network().sent().size();
  if (fault != nullptr) {
    NetworkFault shifted = *fault;
    shifted.message += before;
    cluster.network().plan(shifted);
  }
  {
    const auto session = cluster.session(model.graph, {.operation_timeout = Seconds{30}});
    const auto attempt = [&](const std::function<void()>& act) {
      try {
        act();
      } catch (const Error& error) {
        const bool is_good = error.code() == Code::kAborted || error.code() == Code::kUnavailable ||
                             error.code() == Code::kDeadlineExceeded || error.code() == Code::kFailedPrecondition;
        EXPECT_TRUE(is_good) << code_name(error.code()) << ": " << error.what();
      }
    };
    for (int i = 0; i < 3; ++i) attempt([&] { session->run(model.train); });
    attempt([&] { expect_between_two_steps(model.look(*session)); });
    session->close();
  }
  const uint64_t messages = cluster.network().sent().size() - before;
  cluster.clock().run_until([] { return false; }, Seconds{3});  // for a restart
  EXPECT_TRUE(cluster.nothing_is_left(Seconds{120}));
  const auto next = cluster.session(model.graph);
  try {
    expect_between_two_steps(model.look(*next));
  } catch (const FailedPreconditionError&) {
    EXPECT_TRUE(fault != nullptr && is_a_death(fault->kind));  // of a ps, with its variables
  }
  return messages;
}

// With faults of so many kinds in each message, by turns.
void expect_whole_steps(size_t kinds_of_message) {
  const uint64_t messages = train_under(nullptr);
  ASSERT_GT(messages, 30u);
  const std::vector<NetworkFault::Kind> kinds = all_network_faults();
  for (uint64_t i = 1; i <= messages; ++i) {
    for (size_t kind = 0; kind < kinds_of_message; ++kind) {
      const NetworkFault fault{.kind = kinds[(7 * i + kind) % kinds.size()], .message = i, .time = Seconds{1}};
      SCOPED_TRACE(to_string(fault));
      train_under(&fault);
    }
  }
}

TEST(ClusterTrainingFaults, EachStepIsOnAllTasksOrOnNone) {
  expect_whole_steps(/*kinds_of_message=*/1);
}

TEST(ClusterTrainingFaults, SoItIsWithFaultsOfEveryKindInEveryMessage) {
  LONGHAUL_NEEDS("long_tests", std::getenv("LONGHAUL_LONG_TESTS") != nullptr, "LONGHAUL_LONG_TESTS is not set");
  expect_whole_steps(all_network_faults().size());
}

}  // namespace
}  // namespace longhaul

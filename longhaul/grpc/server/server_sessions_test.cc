// Sessions on servers over real connections: from the server's own process, and from a client.
#include <gmock/gmock.h>

#include <future>

#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// The parameter: whether the session calls its server, as from another process.
class ServerSessionsTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Session> session(Graph& graph, SessionOptions options = {}) {
    options.use_rpc_for_inprocess_master = GetParam();
    return new_session(server_->target(), graph, options);
  }

  const std::unique_ptr<Server> server_ = Server::create_local_server();
};

TEST_P(ServerSessionsTest, VariablesOutliveTheirSession) {  // SS-1, SS-13
  CounterModel model;
  session(model.graph)->run(model.init);
  for (int i = 0; i < 9; ++i) {
    CounterModel same;
    session(same.graph)->run(same.add);
  }
  EXPECT_EQ(model.value(*session(model.graph)), 9);
}

TEST_P(ServerSessionsTest, AnIsolatedSessionSharesNothing) {  // SS-2, unlike WK-2, WK-11
  CounterModel model;
  const auto shared = session(model.graph);
  shared->run(model.init);
  const auto isolated = session(model.graph, {.isolate_session_state = true});
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { model.value(*isolated); }),
              HasSubstr("Attempting to use uninitialized value"));
  isolated->run(model.init);
  isolated->run(model.add);
  EXPECT_EQ(model.value(*shared), 0);
}

TEST_P(ServerSessionsTest, AResetEmptiesContainersAndEndsSessions) {  // SS-3
  CounterModel model;
  const auto before = session(model.graph);
  before->run(model.init);
  Session::reset(server_->target());
  EXPECT_THROW(before->run(model.add), AbortedError);
  EXPECT_THROW(model.value(*session(model.graph)), FailedPreconditionError);
  session(model.graph)->run(model.init);
  Session::reset(server_->target(), {"nobody"});  // SS-4
  EXPECT_EQ(model.value(*session(model.graph)), 0);
}

TEST_P(ServerSessionsTest, AResetOfOneContainerLeavesTheOthers) {  // SS-3
  Graph graph;
  const Scope root(graph);
  const auto variable_in = [&](const char* container) {
    const Attrs attrs{{"dtype", kFloat}, {"shape", Shape{}}, {"container", std::string(container)}};
    return root.add("VariableV2", container, {}, attrs).output();
  };
  const Output kept = variable_in("kept"), cleared = variable_in("cleared");
  const auto before = session(graph);
  for (const Output& variable : {kept, cleared}) {
    before->run(root.add("Assign", "assign", {variable, ops::constant(root, 2.f)}).output());
  }
  Session::reset(server_->target(), {"cleared"});
  EXPECT_THROW(before->run(kept), AbortedError) << "all sessions end";
  const auto after = session(graph);
  EXPECT_EQ(after->run(kept).item<float>(), 2);
  EXPECT_THROW(after->run(cleared), FailedPreconditionError);
}

// Power iteration: each step feeds what the last one fetched.
TEST_P(ServerSessionsTest, NumbersKeepTheirBitsOverManySteps) {  // MA-18
  Graph graph;
  const Scope root(graph);
  const Output matrix = ops::constant(root, Tensor::of<double>(Shape{2, 2}, {2, 1, 1, 3}));
  const Output x = ops::placeholder(root, kDouble, {2, 1}), product = ops::matmul(root, matrix, x);
  const Output next = ops::div(root, product, ops::sqrt(root, ops::sum(root, ops::square(root, product))));
  const auto on_server = session(graph), here = new_session("", graph);
  Tensor fed = Tensor::of<double>(Shape{2, 1}, {1, 0}), expected = fed;
  for (int step = 0; step < 60; ++step) {
    fed = on_server->run(next, {{x, fed}});
    expected = here->run(next, {{x, expected}});
    ASSERT_TRUE(identical(fed, expected)) << step;
  }
  EXPECT_NEAR(fed.flat<double>()[0] / fed.flat<double>()[1], 2 / (1 + std::sqrt(5)), 1e-10);
}

TEST_P(ServerSessionsTest, ACloseCancelsWhatWaits) {  // SS-5, SS-24
  WaitingModel model;
  const auto session = this->session(model.graph);
  auto waits =
      std::async(std::launch::async, [&] { return error_of<CancelledError>([&] { session->run(model.element); }); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  session->close();
  EXPECT_THAT(waits.get(), HasSubstr("Session::Close"));
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { session->run(model.size); }),
              HasSubstr("Attempted to use a closed Session."));
}

TEST_P(ServerSessionsTest, ATimeoutEndsAWait) {  // SS-6, SS-14
  WaitingModel model;
  EXPECT_THROW(session(model.graph)->run(model.element, {}, {.timeout = Seconds{0.2}}), DeadlineExceededError);
  EXPECT_THAT(error_of<DeadlineExceededError>(
                  [&] { session(model.graph, {.operation_timeout = Seconds{1}})->run(model.element); }),
              AllOf(HasSubstr("Where the step was:"), HasSubstr("runs " + model.element.op().name()),
                    HasSubstr("/device:CPU:0, for ")));
}

TEST_P(ServerSessionsTest, LargeTensorsAreFetchedAndFed) {  // SS-7
  Graph graph;
  const Scope root(graph);
  std::vector<float> numbers(30'000'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000);
  const Tensor large = Tensor::of<float>({10'000, 3'000}, std::move(numbers));
  const Output constant = ops::constant(root, large), fed = ops::placeholder(root, kFloat, {10'000, 3'000});
  const auto session = this->session(graph);
  EXPECT_TRUE(identical(session->run(constant), large));
  EXPECT_TRUE(identical(session->run(ops::identity(root, fed), {{fed, large}}), large));
}

TEST_P(ServerSessionsTest, AGraphMayGrow) {  // SS-7
  CounterModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  const Output doubled = ops::add(model.scope, model.count, model.count);
  session->run(model.add);
  EXPECT_EQ(session->run(doubled).item<float>(), 2);
}

TEST_P(ServerSessionsTest, ResultsHaveTheOrderOfTheFetches) {  // unlike SS-11
  CounterModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  session->run(model.add);
  const Output two = ops::constant(model.scope, 2.f), three = ops::constant(model.scope, 3.f);
  const auto values = session->run({three, model.count, two, three});
  EXPECT_EQ(values.at(0).item<float>() * 100 + values.at(1).item<float>() * 10 + values.at(2).item<float>(), 312);
  EXPECT_EQ(values.at(3).item<float>(), 3);
}

TEST_P(ServerSessionsTest, CallablesRunAsOftenAsOneLikes) {  // SS-19
  CounterModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  const Output x = ops::placeholder(model.scope, kFloat, {}, "x");
  const Callable call = session->make_callable(ops::add(model.scope, x, x), {x});
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(call(Tensor::scalar(static_cast<float>(i)))[0].item<float>(), static_cast<float>(2 * i));
}

INSTANTIATE_TEST_SUITE_P(Paths, ServerSessionsTest, ::testing::Bool(),
                         [](const auto& path) { return path.param ? "Called" : "InProcess"; });

// ---- Several servers ----

class ClusterSessionsTest : public ::testing::Test {
 protected:
  // The sum of a table of 0, 1, 2, ... that one ps computes and sends to the other, whole, which adds it up.
  int64_t sum_of_table_sent(int64_t rows, int64_t columns) {
    Graph graph;
    const Scope on0 = Scope(graph).with_device("/job:ps/task:0"), on1 = Scope(graph).with_device("/job:ps/task:1");
    const auto numbers = [](int64_t count, int64_t by, const Shape& shape) {
      std::vector<int64_t> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(i * by);
      return Tensor::of<int64_t>(shape, std::move(values));
    };
    const Output table = ops::add(on0, ops::constant(on0, numbers(rows, columns, Shape{rows, 1})),
                                  ops::constant(on0, numbers(columns, 1, Shape{1, columns})));
    return new_session(cluster_.target("worker", 0), graph)->run(ops::sum(on1, table)).item<int64_t>();
  }

  LoopbackCluster cluster_{{{"ps", 2}, {"worker", 2}}};
};

TEST_F(ClusterSessionsTest, AWorkerSeesWhatAnotherHasInitialised) {  // SE-13, SS-1
  CounterModel one("/job:ps/task:0"), same("/job:ps/task:0");
  const auto first = new_session(cluster_.target("worker", 0), one.graph);
  first->run(one.init);
  first->run(one.add);
  EXPECT_EQ(same.value(*new_session(cluster_.target("worker", 1), same.graph)), 1);
}

// A step that writes on both, and a report on both.
TEST_F(ClusterSessionsTest, AStepOfTwoPsTasks) {
  Graph graph;
  const Scope root(graph), on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  const Variable a = ops::variable(on0, "a", Tensor::scalar(0.f)), b = ops::variable(on1, "b", Tensor::scalar(0.f));
  const Operation train = ops::group(
      root,
      {ops::assign_add(on0, a, ops::constant(on0, 1.f)).op(), ops::assign_add(on1, b, ops::add(on1, a, 1.0)).op()},
      "train");
  const Output missing = ops::report_uninitialized_variables(root, ops::global_variables(graph));
  for (const bool is_called : {false, true}) {
    const auto session =
        new_session(cluster_.target("worker", is_called ? 1 : 0), graph, {.use_rpc_for_inprocess_master = is_called});
    if (!is_called) {
      EXPECT_THAT(session->run(missing).flat<std::string>(), ElementsAre("a", "b"));
      session->run(ops::global_variables_initializer(root));
    }
    EXPECT_THAT(session->run(missing).flat<std::string>(), IsEmpty());
    for (int i = 0; i < 5; ++i) session->run(train);
  }
  const auto values = new_session(cluster_.target("ps", 0), graph)->run({a, b}, {}, {.snapshot = true});
  EXPECT_EQ(values.at(0).item<float>(), 10);
  EXPECT_EQ(values.at(1).item<float>(), 55);
}

TEST_F(ClusterSessionsTest, TextsTravelBetweenTasks) {  // SS-23
  Graph graph;
  const Scope on0 = Scope(graph).with_device("/job:ps/task:0"), on1 = Scope(graph).with_device("/job:ps/task:1");
  const Output text = ops::identity(on0, ops::constant(on0, Tensor::scalar(std::string("left"))));
  const Output joined = on1.add("StringJoin", "joined", {text, text}, {{"separator", std::string(" ")}}).output();
  EXPECT_EQ(new_session(cluster_.target("worker", 0), graph)->run(joined).item<std::string>(), "left left");
}

// Far above what one slice, one write to a socket and one window of HTTP/2 take.
TEST_F(ClusterSessionsTest, ATensorOf32MebibytesTravelsBetweenTasks) {  // SS-22
  constexpr int64_t kCount = int64_t{1} << 22;
  EXPECT_EQ(sum_of_table_sent(1 << 10, 1 << 12), kCount * (kCount - 1) / 2);
}

TEST_F(ClusterSessionsTest, ATensorOfAGibibyteTravelsBetweenTasks) {  // SS-22
  LONGHAUL_NEEDS("long_tests", std::getenv("LONGHAUL_LONG_TESTS") != nullptr,
                 "LONGHAUL_LONG_TESTS is not set; a tensor of 1 GiB takes 4 GiB of memory");
  constexpr int64_t kCount = int64_t{1} << 27;
  EXPECT_EQ(sum_of_table_sent(1 << 13, 1 << 14), kCount * (kCount - 1) / 2);
}

TEST_F(ClusterSessionsTest, AnErrorOfATaskComesWhole) {  // SS-20
  Graph graph;
  const Scope on1 = Scope(graph).with_device("/job:ps/task:1");
  const std::string name(100'000, 'n');
  const Output unset = ops::variable(on1, name, Tensor::scalar(1.f));
  const std::string text =
      error_of<FailedPreconditionError>([&] { new_session(cluster_.target("worker", 0), graph)->run(unset); });
  EXPECT_THAT(text, AllOf(HasSubstr("From /job:ps/replica:0/task:1:\n"), HasSubstr(name)));
}

TEST_F(ClusterSessionsTest, DevicesOfAllTasksAreListed) {  // MA-3, MA-5
  Graph graph;
  EXPECT_THAT(new_session(cluster_.target("worker", 1), graph)->list_devices(), SizeIs(4));
  const auto filtered = new_session(cluster_.target("worker", 1), graph, {.device_filters = {"/job:ps"}});
  EXPECT_THAT(filtered->list_devices(), SizeIs(3));
  CounterModel on_other("/job:worker/task:0");
  const auto without_other = new_session(cluster_.target("worker", 1), on_other.graph, {.device_filters = {"/job:ps"}});
  EXPECT_THAT(refusal_of([&] { without_other->run(on_other.init); }), HasSubstr("/job:worker"));
}

TEST_F(ClusterSessionsTest, ATraceHasTheDevicesOfAllTasks) {  // SS-18
  Graph graph;
  const Scope root(graph);
  std::vector<Fetch> fetches;
  for (const char* device : {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:1"}) {
    const Scope there = root.with_device(device);
    fetches.emplace_back(ops::add(there, ops::constant(there, 1.f), ops::constant(there, 2.f)));
  }
  proto::RunMetadata metadata;
  new_session(cluster_.target("worker", 0), graph)
      ->run(fetches, {}, {.trace_level = TraceLevel::kFullTrace}, &metadata);
  std::vector<std::string> devices;
  for (const auto& device : metadata.step_stats().dev_stats()) devices.push_back(device.device());
  EXPECT_THAT(devices,
              UnorderedElementsAre("/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0",
                                   "/job:worker/replica:0/task:1/device:CPU:0"));
}

// The other task waits for what does not come, and is cancelled.
TEST_F(ClusterSessionsTest, OfSeveralErrorsTheOneThatCausedTheOthersIsReported) {  // SS-21
  Graph graph;
  const Scope root(graph), on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  const Output unset = ops::variable(on0, "unset", Tensor::scalar(1.f));
  const FIFOQueue queue(on1, 10, {kFloat});
  const Output waits = queue.dequeue(on1)[0];
  const std::string text =
      error_of<FailedPreconditionError>([&] { new_session(cluster_.target("worker", 0), graph)->run({unset, waits}); });
  EXPECT_THAT(text, AllOf(HasSubstr("/job:ps/replica:0/task:0"), HasSubstr("unset"), Not(HasSubstr("ancelled"))));
}

TEST_F(ClusterSessionsTest, ASessionMayBringItsOwnCluster) {  // SS-17
  const auto address = [&](const char* job, int index) { return cluster_.spec().task_address(job, index); };
  for (const bool is_called : {false, true}) {
    CounterModel model("/job:other/task:1");
    const auto session = new_session(cluster_.target("worker", 0), model.graph,
                                     {.cluster_def = ClusterSpec({{"other", {address("worker", 0), address("ps", 0)}}}),
                                      .use_rpc_for_inprocess_master = is_called});
    EXPECT_THROW(model.value(*session), FailedPreconditionError);
    session->run(model.init);
    session->run(model.add);
    EXPECT_EQ(model.value(*session), 1);
  }
}

}  // namespace
}  // namespace longhaul

// MasterService whose sessions run on several tasks.
#include <gmock/gmock.h>

#include "longhaul/cluster/wire/wire_fixture.h"
#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/scope.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A master on worker 0, and a client whose waits let the simulated time pass.
class MasterClusterTest : public ::testing::Test {
 protected:
  MasterClusterTest() {
    client_.wait = [this](FakeWireCall& call) {
      return cluster_.clock().run_until([&] { return call.has_ended(); }, Seconds{60});
    };
  }
  ~MasterClusterTest() override { EXPECT_TRUE(service_.stop("the test ends", Seconds{60})); }

  MasterServiceOptions options() {
    MasterServiceOptions options;
    options.new_session = [this](Graph& graph, const SessionOptions& session) {
      return cluster_.session(graph, session);
    };
    options.list_devices = options.own_devices = [] { return std::vector<DeviceAttributes>(); };
    options.reset = [](const std::vector<std::string>&) {};
    options.clock = &cluster_.clock();
    options.around = [this](std::function<void()> job) { return cluster_.clock().around(std::move(job)); };
    return options;
  }

  // The client dies after that time, unless it has its answer. Whether the run was made.
  bool run_of_a_client_that_goes_in(Seconds time, const proto::master::RunStepRequest& request) {
    const auto call = client_.start("RunStep", request);
    cluster_.clock().run_until([&] { return call->has_ended(); }, time);
    call->go();
    EXPECT_TRUE(client_.wait(*call));
    const std::string error = error_of<CancelledError>([&] { call->answer(); });
    EXPECT_THAT(error, AnyOf(IsEmpty(), HasSubstr("the client has gone")));
    return error.empty();
  }

  TrainingCluster cluster_;
  MasterService service_{options()};
  WireClient client_{service_};
};

TEST_F(MasterClusterTest, AClientsVariablesLiveOnTheTasksThatItNames) {
  proto::GraphDef graph = variable_graph("/job:ps/task:1");
  proto::NodeDef* node = graph.add_node();
  node->set_name("here");
  node->set_op("Identity");
  node->add_input("Variable/read");
  const std::string session = client_.create(graph);
  client_.run(session, {}, {"init"});
  EXPECT_EQ(client_.run(session, {"here:0"})[0].flat<float>()[1], 1.5f);
  client_.run(session, {}, {"Assign"}, {{"Placeholder:0", Tensor::of<float>({2, 3})}});
  proto::master::ListDevicesRequest request;
  request.set_session_handle(session);
  EXPECT_EQ(client_.call<proto::master::ListDevicesResponse>("ListDevices", request).local_device_size(), 4);
  client_.close(session);

  const std::string later = client_.create(graph);
  EXPECT_EQ(client_.run(later, {"here:0"})[0].flat<float>()[1], 3);
  cluster_.network().kill("/job:ps/replica:0/task:1");
  EXPECT_THAT([&] { client_.run(later, {"here:0"}); }, ::testing::ThrowsMessage<AbortedError>(HasSubstr("ps")));
  client_.close(later);
}

// Variables on two tasks, to which a step assigns the same value; and one that waits for an element of a queue before.
struct TwoTaskGraph {
  Graph graph;
  Scope root{graph};
  Scope ps0 = root.with_device("/job:ps/task:0"), ps1 = root.with_device("/job:ps/task:1");
  Output value = ops::placeholder(root, kFloat, {}, "value");
  Variable v = ops::variable(ps0, "v", Tensor::scalar(0.f)), w = ops::variable(ps1, "w", Tensor::scalar(0.f));
  Operation init = ops::group(root, {v.initializer(), w.initializer()}, "init");
  Operation step = step_after(root, "step");
  FIFOQueue queue{ps1, 2, {kFloat}, {.shapes = {Shape{}}}};
  Operation waits = step_after(root.with_control_dependencies({queue.dequeue(ps1)[0].op()}), "waits");
  Output read_v = ops::identity(root, v, "read_v"), read_w = ops::identity(root, w, "read_w");

  Operation step_after(const Scope& scope, const std::string& name) {
    const Scope on0 = scope.with_device("/job:ps/task:0"), on1 = scope.with_device("/job:ps/task:1");
    return ops::group(root, {ops::assign(on0, v, value).op(), ops::assign(on1, w, value).op()}, name);
  }
};

TEST_F(MasterClusterTest, TheRunOfAClientThatDiesEndsOnAllItsTasksAndChangesNothing) {
  const TwoTaskGraph graph;
  const std::string session = client_.create(to_graph_def(graph.graph));
  client_.run(session, {}, {"init"});
  EXPECT_FALSE(run_of_a_client_that_goes_in(
      Seconds{2}, WireClient::run_request(session, {}, {"waits"}, {{"value:0", Tensor::scalar(1.f)}})));
  EXPECT_EQ(client_.run(session, {"read_v:0"})[0].item<float>(), 0);
  client_.run(session, {}, {"step"}, {{"value:0", Tensor::scalar(2.f)}});
  EXPECT_EQ(client_.run(session, {"read_w:0"})[0].item<float>(), 2);
  client_.close(session);
  EXPECT_TRUE(cluster_.nothing_is_left(Seconds{30}));
}

// Its line may have broken: by the request_id it asks for the same run again, before its death is noticed or after.
TEST_F(MasterClusterTest, AClientThatComesBackHasItsStepMadeOnce) {
  TwoTaskGraph graph;
  const std::string put = graph.queue.enqueue(graph.ps1, {ops::constant(graph.ps1, 1.f)}).name();
  const std::string session = client_.create(to_graph_def(graph.graph));
  client_.run(session, {}, {"init"});
  auto request = WireClient::run_request(session, {}, {"waits"}, {{"value:0", Tensor::scalar(3.f)}});
  request.set_request_id(77);
  EXPECT_FALSE(run_of_a_client_that_goes_in(Seconds{2}, request));
  const auto first = client_.start("RunStep", request), again = client_.start("RunStep", request);
  cluster_.clock().run_until([] { return false; }, Seconds{2});
  first->go();
  cluster_.clock().run_until([] { return false; }, Seconds{2});
  EXPECT_FALSE(again->has_ended());
  client_.run(session, {}, {put});
  EXPECT_TRUE(client_.wait(*again));
  EXPECT_NO_THROW(again->answer());
  EXPECT_EQ(client_.run(session, {"read_v:0"})[0].item<float>(), 3);
  EXPECT_NO_THROW(client_.run(request));  // the same answer: the queue is empty
  client_.close(session);
  EXPECT_TRUE(cluster_.nothing_is_left(Seconds{30}));
}

// One message of the step, each in turn, comes a second late, and the client dies meanwhile.
TEST_F(MasterClusterTest, AStepIsWholeOrNothingWhenTheDeathOfItsClientRacesTheCommit) {
  const TwoTaskGraph graph;
  const std::string session = client_.create(to_graph_def(graph.graph));
  client_.run(session, {}, {"init"});
  client_.run(session, {}, {"step"}, {{"value:0", Tensor::scalar(0.f)}});
  float before = 0;
  int made = 0, dropped = 0;
  for (uint64_t late = 1; late <= 8; ++late) {  // RunPart and Commit to both, with replies
    SCOPED_TRACE(late);
    cluster_.network().plan(
        {.kind = NetworkFault::Kind::kDelay, .message = cluster_.network().sent().size() + late, .time = Seconds{1}});
    const auto value = static_cast<float>(late);
    const bool is_made = run_of_a_client_that_goes_in(
        Seconds{0.5}, WireClient::run_request(session, {}, {"step"}, {{"value:0", Tensor::scalar(value)}}));
    cluster_.clock().run_until([] { return false; }, Seconds{2});
    const auto values = client_.run(session, {"read_v:0", "read_w:0"});
    EXPECT_EQ(values[0].item<float>(), values[1].item<float>());
    EXPECT_EQ(values[0].item<float>(), is_made ? value : before);
    before = values[0].item<float>();
    ++(is_made ? made : dropped);
  }
  EXPECT_GE(made, 1);
  EXPECT_GE(dropped, 1);
  client_.close(session);
  EXPECT_TRUE(cluster_.nothing_is_left(Seconds{30}));
}

}  // namespace
}  // namespace longhaul

// MasterService whose sessions run on several tasks.
#include <gmock/gmock.h>

#include "longhaul/cluster/wire/wire_fixture.h"
#include "longhaul/cluster/worker/training_cluster_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace longhaul

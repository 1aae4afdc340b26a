// The tests of `train` once more, on the sessions that users have: each ScriptedSession runs on a DirectSession here.
#include <gmock/gmock.h>

#include <limits>

#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

testing::ScriptedSession::Engine direct_sessions() {
  constexpr int kAll = std::numeric_limits<int>::max();  // if there are any: as for a session of one process
  return {
      .new_server = [] { return std::make_shared<TaskResources>(TaskOptions{.cpu_devices = 2, .most_gpus = kAll}); },
      .new_session = [](Graph& graph, const std::shared_ptr<void>& server) -> std::unique_ptr<Session> {
        return std::make_unique<DirectSession>(graph, SessionOptions{},
                                               std::static_pointer_cast<TaskResources>(server));
      }};
}

TEST(TrainOnEngine, TheInterpreterDoesNothing) {
  Graph graph;
  const Variable v = ops::variable(Scope(graph), "v", Tensor::scalar(2.f));
  const auto server = std::make_shared<testing::ScriptedSession::Variables>();
  testing::ScriptedSession one(graph, server), other(graph, server);
  one.run(v.initializer());
  EXPECT_EQ(other.run(v).item<float>(), 2);
  EXPECT_EQ(other.runs(), 1);
  MutexLock lock(server->mutex);
  EXPECT_TRUE(server->values.empty());
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  longhaul::testing::ScriptedSession::run_on(longhaul::direct_sessions());
  return RUN_ALL_TESTS();
}

#include <atomic>
#include <thread>
#include <utility>

#include "longhaul/train/hooks/global_step_waiter_hook.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

// Makes a first session as a chief, and then waits for a chief that is not there.
class ChiefThenWorker : public SessionCreator {
 public:
  ChiefThenWorker(std::shared_ptr<SessionCreator> chief, std::shared_ptr<SessionCreator> worker)
      : chief_(std::move(chief)), worker_(std::move(worker)) {}
  Graph& graph() const override { return worker_->graph(); }
  std::shared_ptr<Session> create_session() override {
    return (chief_ ? std::exchange(chief_, nullptr) : worker_)->create_session();
  }

 private:
  std::shared_ptr<SessionCreator> chief_;
  const std::shared_ptr<SessionCreator> worker_;
};

class StopOfAWorker : public MonitoredFixture {
 protected:
  // Without the chief there is no first session either.
  void be_worker(bool after_chief) {
    options.session_creator =
        std::make_shared<ChiefThenWorker>(after_chief ? options.session_creator : nullptr,
                                          std::make_shared<WorkerSessionCreator>(WorkerSessionCreatorOptions{
                                              .graph = &graph, .scaffold = scaffold, .coordinator = coordinator}));
  }
  // Requests a stop once that was logged, while `body` runs.
  void stop_when_logged(const std::string& line, const std::function<void()>& body) {
    const LogRecorder log;
    std::thread stopper([&] {
      eventually([&] { return log.text().find(line) != std::string::npos; });
      coordinator.request_stop();
    });
    body();
    stopper.join();
  }
};

TEST_F(StopOfAWorker, WhileALostSessionIsReplacedEndsItWell) {
  be_worker(/*after_chief=*/true);
  bool is_lost = false;
  const Output loses = ops::identity(root.with_control_dependencies({code([&] {
    if (!std::exchange(is_lost, true)) throw AbortedError("preempted");
  })}),
                                     step);
  MonitoredSession session(options);
  stop_when_logged("Waiting for model to be ready", [&] {
    EXPECT_NO_THROW(session.monitor([&] {
      session.run(loses);
      FAIL() << "there is no session to run in";
    }));
  });
}

TEST_F(StopOfAWorker, WhileItsFirstSessionIsWaitedForEndsItWell) {
  add_hook();
  be_worker(/*after_chief=*/false);
  bool is_called = false;
  stop_when_logged("Waiting for model to be ready", [&] {
    MonitoredSession session(options);
    EXPECT_TRUE(session.should_stop());
    session.monitor([&] {
      is_called = true;
      while (!session.should_stop()) session.run(train);
    });
  });
  EXPECT_TRUE(is_called);
  EXPECT_THAT(calls, ElementsAre("begin"));
}

TEST_F(StopOfAWorker, EndsTheWaitOfAHook) {
  options.hooks.push_back(std::make_shared<GlobalStepWaiterHook>(1000));
  MonitoredSession session(options);
  stop_when_logged("Waiting for global step 1000", [&] { session.run(train); });
  EXPECT_TRUE(session.should_stop());
}

TEST_F(StopOfAWorker, EndsTheWaitForAQueueThatItsThreadsFill) {
  const FIFOQueue queue(root, 10, {kInt64}, {.shapes = {Shape{}}});
  std::atomic<bool> released{false}, asked{false};
  enqueue_from(root, queue, [&]() -> std::optional<std::vector<Tensor>> {
    asked = true;
    eventually([&] { return released.load(); });
    return std::nullopt;
  });
  const Output next = queue.dequeue(root)[0];
  MonitoredSession session(options);
  std::thread stopper([&] {
    eventually([&] { return asked.load(); });
    coordinator.request_stop();
  });
  session.monitor([&] {
    EXPECT_THROW(session.run(next), OutOfRangeError);
    released = true;
  });
  stopper.join();
}

}  // namespace
}  // namespace longhaul

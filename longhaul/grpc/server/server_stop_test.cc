#include <gmock/gmock.h>

#include <csignal>
#include <future>

#include "longhaul/base/clock.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/session/stop_notice.h"
#include "longhaul/session/training_ending.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/signals/stop_signals.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerStopTest : public ::testing::Test {
 protected:
  static double seconds_of(const std::function<void()>& act) {
    const Seconds began = Clock::real().now();
    act();
    return (Clock::real().now() - began).count();
  }

  LoopbackCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  CounterModel model_{"/job:ps/task:0"};
};

TEST_F(ServerStopTest, AStopEndsRunsAtOnce) {  // unlike SE-5, unlike SE-8
  WaitingModel waiting("/job:ps/task:0");
  const auto session = new_session(cluster_.target("worker", 0), waiting.graph);
  EXPECT_EQ(session->run(waiting.size).item<int32_t>(), 0);
  auto run = std::async(std::launch::async, [&] { return coded_error_of([&] { session->run(waiting.element); }); });
  EXPECT_EQ(run.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_LE(seconds_of([&] { cluster_.server("ps", 0).stop(); }), 5);
  EXPECT_THAT(run.get(), AnyOf(StartsWith("ABORTED: "), StartsWith("UNAVAILABLE: ")));
  EXPECT_THAT(error_of<AbortedError>([&] { session->run(waiting.size); }), HasSubstr("/job:ps/replica:0/task:0"));
}

TEST_F(ServerStopTest, AfterARestartOnItsPortANewSessionGoesOn) {  // WK-3
  for (const bool is_called : {false, true}) {
    const auto session =
        new_session(cluster_.target("worker", 0), model_.graph, {.use_rpc_for_inprocess_master = is_called});
    session->run(model_.init);
    cluster_.stop("ps", 0);
    cluster_.start("ps", 0);
    EXPECT_THROW(session->run(model_.add), AbortedError);
    EXPECT_THROW(session->run(model_.add), AbortedError);
    const auto next =
        new_session(cluster_.target("worker", 0), model_.graph, {.use_rpc_for_inprocess_master = is_called});
    EXPECT_THROW(next->run(model_.add), FailedPreconditionError) << "its variables are gone";
    next->run(model_.init);
    next->run(model_.add);
    EXPECT_EQ(model_.value(*next), 1);
  }
}

TEST_F(ServerStopTest, ASessionMayOutliveItsServer) {
  const auto own = new_session(cluster_.target("ps", 0), model_.graph);
  const auto called = new_session(cluster_.target("ps", 0), model_.graph, {.use_rpc_for_inprocess_master = true});
  own->run(model_.init);
  called->run(model_.add);
  const Callable call = own->make_callable(model_.add);
  cluster_.stop("ps", 0);
  EXPECT_THROW(own->run(model_.add), Error);
  EXPECT_THROW(called->run(model_.add), AbortedError);
  EXPECT_THROW(call(), Error);
  EXPECT_LE(seconds_of([&] {
              own->close();
              called->close();
            }),
            10);
}

TEST_F(ServerStopTest, AfterSigtermThoseThatSaveAreToldAndHaveTime) {
  const auto session = new_session(cluster_.target("worker", 0), model_.graph);
  session->run(model_.init);
  std::promise<StopNotice> told;
  const auto noticing =
      session->capabilities().stop_noticing->notice_stops([&](const StopNotice& notice) { told.set_value(notice); });
  for (int i = 0; i < 100; ++i) session->run(model_.add);  // by then the ps has the call that waits for its stop
  auto joined = std::async(std::launch::async, [&] { cluster_.server("ps", 0).join(); });
  ASSERT_TRUE(comes_true(sigterm_is_handled));
  raise(SIGTERM);
  auto notice = told.get_future();
  ASSERT_EQ(notice.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(notice.get().task, "/job:ps/replica:0/task:0");
  EXPECT_EQ(model_.value(*session), 100) << "the model is still there";
  session->close();
  EXPECT_LE(seconds_of([&] { joined.get(); }), 10) << "the last session has ended";
}

class ServerGotSignal : public ServerStopTest, public ::testing::WithParamInterface<int> {};

// Its services have ended by then, and with them who listened.
TEST_P(ServerGotSignal, AChiefThatIsStoppedItselfHasTimeToSave) {
  const auto session = new_session(cluster_.target("worker", 0), model_.graph);
  session->run(model_.init);
  session->capabilities().stop_noticing->notice_stops([](const StopNotice&) { FAIL() << "nobody listens"; }).reset();
  for (int i = 0; i < 100; ++i) session->run(model_.add);  // by then the ps has the call that waits for its stop
  auto joined = std::async(std::launch::async, [&] { cluster_.server("ps", 0).join(); });
  ASSERT_TRUE(comes_true([] { return is_handled(GetParam()); }));
  raise(GetParam());
  EXPECT_EQ(joined.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  EXPECT_EQ(model_.value(*session), 100) << "the model is still there";
  session->close();
  EXPECT_LE(seconds_of([&] { joined.get(); }), 10) << "the last session has ended";
}

INSTANTIATE_TEST_SUITE_P(All, ServerGotSignal, ::testing::Values(SIGTERM, SIGINT, SIGUSR1),
                         [](const auto& signal) { return signal_name(signal.param); });

// A ps that ends with its chief, joined on a thread of its own.
class JoinedServer {
 public:
  explicit JoinedServer(bool stops)
      : server_(ClusterSpec({{"ps", {"localhost:0"}}}), {.job_name = "ps", .stop_with_chief = stops}) {}
  ~JoinedServer() { server_.stop(); }

  std::unique_ptr<Session> session(CounterModel& model) { return new_session(server_.target(), model.graph); }
  bool ends_within(double seconds) {
    return joined_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  }

 private:
  Server server_;
  std::future<void> joined_ = std::async(std::launch::async, [this] { server_.join(); });
};

TEST(ServerStopsWithChief, OnceTheTrainingHasEndedForGood) {  // unlike SE-8, unlike RC-13
  JoinedServer ps(/*stops=*/true);
  CounterModel model("/job:ps/task:0");
  const auto chief = ps.session(model), other = ps.session(model);
  chief->run(model.init);
  other->run(model.add);
  chief->capabilities().training_ending->end_training(Seconds{10});
  chief->close();
  EXPECT_FALSE(ps.ends_within(0.1)) << "another session makes its last steps";
  other->run(model.add);
  EXPECT_EQ(model.value(*other), 2);
  other->close();
  EXPECT_TRUE(ps.ends_within(20));
}

TEST(ServerStopsWithChief, NotWhenTheChiefIsGone) {
  JoinedServer ps(/*stops=*/true);
  CounterModel model("/job:ps/task:0");
  ps.session(model)->run(model.init);  // and is closed without a word
  EXPECT_FALSE(ps.ends_within(0.2));
}

TEST(ServerStopsWithChief, NotIfItWasNotTold) {
  JoinedServer ps(/*stops=*/false);
  CounterModel model("/job:ps/task:0");
  const auto chief = ps.session(model);
  chief->run(model.init);
  chief->capabilities().training_ending->end_training(Seconds{10});
  chief->close();
  EXPECT_FALSE(ps.ends_within(0.2));
}

TEST_F(ServerStopTest, TwoThreadsMayStopIt) {
  Server& server = cluster_.server("ps", 0);
  auto other = std::async(std::launch::async, [&] { server.stop(); });
  server.stop();
  other.get();
  EXPECT_TRUE(server.join(Seconds{0}));
}

TEST_F(ServerStopTest, StepsOfManyThreadsAreDoneOrEndWithAnError) {
  new_session(cluster_.target("worker", 0), model_.graph)->run(model_.init);
  std::vector<std::future<int>> trainers;
  for (int i = 0; i < 4; ++i) {
    trainers.push_back(std::async(std::launch::async, [&] {
      const auto session = new_session(cluster_.target("worker", 0), model_.graph);
      int steps = 0;
      const std::string ended = coded_error_of([&] {
        for (;; ++steps) session->run(model_.add);
      });
      EXPECT_THAT(ended, AnyOf(StartsWith("ABORTED: "), StartsWith("UNAVAILABLE: ")));
      return steps;
    }));
  }
  const auto looks = new_session(cluster_.target("worker", 0), model_.graph);
  EXPECT_TRUE(comes_true([&] { return model_.value(*looks) > 20; }));
  cluster_.server("ps", 0).stop();
  int steps = 0;
  for (auto& trainer : trainers) steps += trainer.get();
  EXPECT_GE(steps, 17);
}

}  // namespace
}  // namespace longhaul

// ServerOptions::lost_line: how long a line may be silent until the sessions that use it are lost.
#include <gmock/gmock.h>

#include <cmath>
#include <future>

#include "longhaul/base/clock.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/grpc/tcp_proxy_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Shorter by a second than a cut is noticed in by default, and much longer.
constexpr Seconds kShort{0.2}, kLong{60};

// A ps, and a worker that reaches it by a line which can be cut.
class CutLine {
 public:
  explicit CutLine(Seconds lost_line) : lost_line_(lost_line) {}

  Server& worker() { return worker_; }
  std::string target_of_ps() const { return "grpc://127.0.0.1:" + std::to_string(proxy_.port()); }

  // A run on the ps, during which the line is cut.
  struct Run {
    std::future<std::string> error;
    Seconds cut_at;
  };
  Run cut_during_run(const std::shared_ptr<Session>& session, const WaitingModel& model) {
    session->run(model.size);
    auto error = std::async(std::launch::async, [session, element = model.element] {
      return coded_error_of([&] { session->run(element); });
    });
    EXPECT_EQ(error.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    proxy_.cut(true, true);
    return {std::move(error), Clock::real().now()};
  }
  void cut() { proxy_.cut(true, true); }
  void mend() { proxy_.mend(); }

 private:
  const Seconds lost_line_;
  const int ps_port_ = free_port();
  TcpProxy proxy_{ps_port_};
  const ClusterSpec spec_{{{"ps", {"127.0.0.1:" + std::to_string(proxy_.port())}},
                           {"worker", {"127.0.0.1:" + std::to_string(free_port())}}}};
  Server ps_{
      spec_,
      {.job_name = "ps", .task_index = 0, .listen = "127.0.0.1:" + std::to_string(ps_port_), .lost_line = lost_line_}},
      worker_{spec_, {.job_name = "worker", .task_index = 0, .lost_line = lost_line_}};
};

// How long it takes until the run ends; of a few attempts the shortest, for a machine may be busy.
Seconds noticed_in(const std::function<std::shared_ptr<Session>(CutLine&, Graph&)>& session, Seconds lost_line) {
  Seconds shortest{1e9};
  for (int attempt = 0; attempt < 5 && shortest > kDefaultLostLine; ++attempt) {
    CutLine line(lost_line);
    WaitingModel model("/job:ps/task:0");
    auto run = line.cut_during_run(session(line, model.graph), model);
    EXPECT_THAT(run.error.get(), AnyOf(StartsWith("ABORTED: "), StartsWith("UNAVAILABLE: ")));
    shortest = std::min(shortest, Clock::real().now() - run.cut_at);
  }
  return shortest;
}

std::shared_ptr<Session> session_on_worker(CutLine& line, Graph& graph) {
  return new_session(line.worker().target(), graph);
}

std::shared_ptr<Session> session_of_client(CutLine& line, Graph& graph) {
  return new_session(line.target_of_ps(), graph, {.use_rpc_for_inprocess_master = true});
}

TEST(LostLine, AShortOneEndsTheSessionsOfACutLineSooner) {
  EXPECT_LT(noticed_in(session_on_worker, kShort).count(), kDefaultLostLine.count());
}

// No session is lost, and the run is not made again: there is one element, and it gets that.
TEST(LostLine, ALongOneLosesNothingByACutThatLastsLongerThanTheDefault) {
  CutLine line(kLong);
  WaitingModel model("/job:ps/task:0");
  const auto session = session_on_worker(line, model.graph);
  auto run = line.cut_during_run(session, model);
  EXPECT_EQ(run.error.wait_for(std::chrono::milliseconds(4500)), std::future_status::timeout);
  line.mend();
  session->run(model.put);
  EXPECT_EQ(run.error.get(), "");
}

// The peer lives, and its line is not lost yet.
TEST(LostLine, ATimeoutEndsARunSoonerAndSaysWhatBecameOfTheStep) {  // unlike SS-14
  CutLine line(kLong);
  CounterModel model("/job:ps/task:0");
  const auto session = session_on_worker(line, model.graph);
  session->run(model.init);
  session->run(model.add);
  line.cut();
  const Seconds began = Clock::real().now();
  const std::string text =
      error_of<DeadlineExceededError>([&] { session->run(model.add, {}, {.timeout = Seconds{0.5}}); });
  EXPECT_LT((Clock::real().now() - began).count(), 10) << "of the 60 s of the line";
  EXPECT_THAT(text, AllOf(HasSubstr("/job:ps/replica:0/task:0"), HasSubstr("has not answered RunPart"),
                          HasSubstr("Whether the step was committed is not known")));
  line.mend();
  EXPECT_GE(model.value(*session), 1) << "the call may still arrive";
}

TEST(LostLine, ThatOfClientsIsTheirs) {
  set_client_lost_line(kShort);
  const Seconds noticed = noticed_in(session_of_client, kLong);
  set_client_lost_line(kDefaultLostLine);
  EXPECT_LT(noticed.count(), kDefaultLostLine.count());
}

TEST(LostLine, IsFromATenthOfASecondToAnHour) {
  const ClusterSpec cluster({{"local", {"localhost:0"}}});
  for (const double wrong : {0.0, -1.0, 0.05, 3601.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(refusal_of([&] { Server(cluster, {.lost_line = Seconds{wrong}}); }),
                AllOf(HasSubstr("ServerOptions::lost_line of /job:local/replica:0/task:0"), HasSubstr("to 3600 s")));
    EXPECT_THAT(refusal_of([&] { set_client_lost_line(Seconds{wrong}); }), HasSubstr("set_client_lost_line()"));
  }
  for (const double right : {0.1, 3600.0}) EXPECT_NO_THROW(Server(cluster, {.lost_line = Seconds{right}}));
}

}  // namespace
}  // namespace longhaul

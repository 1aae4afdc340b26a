#include "longhaul/train/graph_defaults.h"
#include "longhaul/train/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;

using ServicesByHand = SupervisorFixture;

// Counts something else than the global step, and how often.
class CountingService : public StepCounterService {
 public:
  using StepCounterService::StepCounterService;
  int calls = 0;

 protected:
  void run_loop() override {
    EXPECT_EQ(step_name(context().global_step), "examples");
    StepCounterService::run_loop();
    ++calls;
    coord().request_stop();
  }
};

TEST_F(ServicesByHand, MayBeDerivedFromAndStartedByHand) {
  add_step(10);
  const Variable examples = ops::variable(root, "examples", Tensor::scalar<int64_t>(640), {.trainable = false});
  options.save_summaries_secs = Seconds{4};
  options.save_at_end = false;
  Supervisor sv(options);
  sv.managed_session(
      [&](Session&) {
        const auto session = std::make_shared<testing::ScriptedSession>(graph, server);
        auto context = std::make_shared<ServiceContext>(sv.service_context(session));
        context->global_step = examples;
        const auto counting = std::make_shared<CountingService>(context);
        counting->start();
        sv.wait_for_stop();
        eventually([&] { return counting->calls == 1; });
      },
      {.start_standard_services = false});
  EXPECT_THAT(described_events(), Contains("summary examples/sec=0 @640"));
}

TEST_F(ServicesByHand, ThatLackWhatTheyWorkWithAreRefused) {
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const auto context = std::make_shared<ServiceContext>(sv.service_context(session));
  EXPECT_THROW(StepCounterService{context}, InvalidArgumentError) << "there is no step";
  EXPECT_THROW(SummaryService{context}, InvalidArgumentError);
  context->saver = nullptr;
  EXPECT_THROW(TimerCheckpointService{context}, InvalidArgumentError);
  sv.stop();
}

}  // namespace
}  // namespace longhaul

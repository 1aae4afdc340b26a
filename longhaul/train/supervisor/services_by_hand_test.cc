#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A program's own service: it does the work of the standard one once, and stops the training.
template <typename Service>
class Once : public Service {
 public:
  using Service::Service;
  std::function<void(const ServiceContext&)> before = [](const ServiceContext&) {};
  std::atomic<int> calls = 0;

 protected:
  void run_loop() override {
    before(this->context());
    Service::run_loop();
    ++calls;
    this->coord().request_stop();
  }
};

class ServicesByHand : public SupervisorFixture {
 protected:
  ServicesByHand() { options.services.save_at_end = false; }

  // Trains with this service alone, in the context that the Supervisor gives, changed by `change`.
  template <typename Service>
  void train_with(Supervisor& sv, const std::function<void(ServiceContext&)>& change) {
    sv.managed_session(
        [&](Session&) {
          auto context = std::make_shared<ServiceContext>(
              sv.service_context(std::make_shared<testing::ScriptedSession>(graph, server)));
          change(*context);
          const auto service = std::make_shared<Once<Service>>(context);
          service->before = [&](const ServiceContext& seen) { EXPECT_EQ(&seen, context.get()); };
          service->start();
          sv.wait_for_stop();
          eventually([&] { return service->calls == 1; });
        },
        {.start_standard_services = false});
  }
};

TEST_F(ServicesByHand, ACounterOfStepsCountsWhatItIsGiven) {
  add_step(10);
  const Variable examples = ops::variable(root, "examples", Tensor::scalar<int64_t>(640), {.trainable = false});
  Supervisor sv(options);
  train_with<StepCounterService>(sv, [&](ServiceContext& context) { context.global_step = examples; });
  EXPECT_THAT(described_events(), Contains("summary examples/sec=0 @640"));
  EXPECT_THAT(described_events(), Not(Contains(HasSubstr("global_step/sec"))));
}

TEST_F(ServicesByHand, SummariesAreThoseThatItIsGiven) {
  add_step(10);
  summary::scalar(root, "standard", ops::constant(root, 1.0f));
  const Output own = summary::scalar(root, "own", ops::constant(root, 2.0f), {.collections = {}});
  Supervisor sv(options);
  train_with<SummaryService>(sv, [&](ServiceContext& context) { context.summary_op = own; });
  EXPECT_THAT(described_events(), Contains("summary own=2 @10"));
  EXPECT_THAT(described_events(), Not(Contains(HasSubstr("summary standard"))));
}

TEST_F(ServicesByHand, CheckpointsGoWhereItIsTold) {
  add_step(10);
  Supervisor sv(options);
  train_with<TimerCheckpointService>(sv,
                                     [&](ServiceContext& context) { context.save_path = directory.file("own.ckpt"); });
  EXPECT_TRUE(exists(directory.file("own.ckpt-10")));
  EXPECT_FALSE(exists(sv.save_path() + "-10"));
  EXPECT_THAT(described_events(), Contains("CHECKPOINT 10"));
}

TEST_F(ServicesByHand, OneThatIsNotStartedIsNotWaitedFor) {  // unlike SV-40
  add_step();
  options.stop_grace_secs = Seconds{0};
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const TimerCheckpointService made(std::make_shared<ServiceContext>(sv.service_context(session)));
  EXPECT_NO_THROW(sv.stop());
}

// A session that can do nothing but run.
class BareSession : public testing::ScriptedSession {
 public:
  using ScriptedSession::ScriptedSession;
  SessionCapabilities capabilities() override { return {}; }
};

TEST_F(ServicesByHand, SummariesThatNeedAStepNeedASessionThatComputesThemAlong) {
  add_step();
  const Output alone = summary::scalar(root, "alone", ops::constant(root, 1.0f));
  const Output fed = summary::scalar(root, "fed", ops::placeholder(root, kFloat, {}, "x"));
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const auto context =
      std::make_shared<ServiceContext>(sv.service_context(std::make_shared<BareSession>(graph, server)));
  context->summary_op = alone;
  EXPECT_NO_THROW(SummaryService{context});
  context->summary_op = fed;
  EXPECT_THROW(SummaryService{context}, UnimplementedError);
  EXPECT_THAT(error_of([&] { SummaryService{context}; }),
              AllOf(HasSubstr("StepFetching"), HasSubstr("summary_op = kNone"), HasSubstr("summary_computed()")));
  sv.stop();
}

TEST_F(ServicesByHand, ThatLackWhatTheyWorkWithAreRefused) {
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const auto context = std::make_shared<ServiceContext>(sv.service_context(session));
  EXPECT_THROW(StepCounterService{context}, InvalidArgumentError) << "there is no step";
  EXPECT_THROW(SummaryService{context}, InvalidArgumentError);
  context->saver = nullptr;
  EXPECT_THROW(TimerCheckpointService{context}, InvalidArgumentError);
  EXPECT_THROW(sv.service_context(nullptr), InvalidArgumentError);
  sv.stop();
}

}  // namespace
}  // namespace longhaul

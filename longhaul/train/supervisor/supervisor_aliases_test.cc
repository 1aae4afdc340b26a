#include <atomic>

#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// TensorFlow's other names, one after the other.
using SupervisorAliases = SupervisorFixture;

TEST_F(SupervisorAliases, PrepareSession) {  // SV-12
  add_step();
  Supervisor sv(options);
  EXPECT_EQ(sv.PrepareSession({.start_standard_services = false})->run(step).item<int64_t>(), 0);
  sv.Stop();
  EXPECT_TRUE(sv.ShouldStop());
}

TEST_F(SupervisorAliases, StartStandardServicesAndQueueRunners) {  // SV-12
  add_step();
  options.chief.keep_journal = false;
  Supervisor sv(options);
  const auto session = sv.PrepareSession({.start_standard_services = false});
  EXPECT_EQ(sv.StartStandardServices(session).size(), 2u) << "steps and checkpoints";
  EXPECT_THAT(sv.StartQueueRunners(session), IsEmpty());
  EXPECT_THAT(sv.StartQueueRunners(session, {}), IsEmpty());
  sv.Stop();
}

TEST_F(SupervisorAliases, RequestStopAndWaitForStop) {  // SV-12
  Supervisor sv(options);
  sv.RequestStop();
  sv.WaitForStop();
  EXPECT_TRUE(sv.ShouldStop());
}

TEST_F(SupervisorAliases, StopOnException) {  // SV-12
  Supervisor sv(options);
  EXPECT_TRUE(sv.StopOnException([] {}));
  EXPECT_FALSE(sv.StopOnException([] { throw OutOfRangeError("the end"); }));
  EXPECT_TRUE(sv.ShouldStop());
}

TEST_F(SupervisorAliases, Loop) {  // SV-12
  Supervisor sv(options);
  std::atomic<int> calls{0};
  sv.Loop(std::nullopt, [&] {
    if (++calls == 3) sv.RequestStop();
  });
  sv.WaitForStop();
  sv.Stop();
  EXPECT_GE(calls.load(), 3);
}

TEST_F(SupervisorAliases, SummaryComputed) {  // SV-12
  add_step(5);
  Supervisor sv(options);
  const auto session = sv.PrepareSession({.start_standard_services = false});
  proto::Summary summary;
  summary.add_value()->set_tag("a");
  sv.SummaryComputed(*session, summary);
  sv.SummaryComputed(*session, summary.SerializeAsString(), 7);
  sv.Stop();
  std::vector<int64_t> steps;
  for (const proto::Event& event : events()) {
    if (event.has_summary()) steps.push_back(event.step());
  }
  EXPECT_THAT(steps, ElementsAre(5, 7));
}

}  // namespace
}  // namespace longhaul

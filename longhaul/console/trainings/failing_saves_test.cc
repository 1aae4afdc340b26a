// Trainings whose saves fail, on a disk without room, as `longhaul status` and `longhaul runs` show them.
#include <thread>

#include "longhaul/console/trainings/run_listing.h"
#include "longhaul/console/trainings/training_status.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// One that has room for small files and none for checkpoints, or for nothing. Its files are as old as the test's clock.
class CrampedDisk : public testing::FaultyFileSystem {
 public:
  explicit CrampedDisk(double modified_at) : modified_at_(modified_at) {}
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    check(path);
    return FaultyFileSystem::create(path, if_exists);
  }
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override {
    check(path);
    return FaultyFileSystem::create_large(path, options);
  }
  double modified_at(const std::string&) override { return modified_at_; }

  std::atomic<bool> is_full{false};

 private:
  void check(const std::string& path) const {
    if (is_full && path.find("model.ckpt") != path.npos) throw ResourceExhaustedError(path + ": No space left");
  }

  const double modified_at_;
};

class FailingSavesTest : public ::testing::Test {
 protected:
  FailingSavesTest() {
    install_session_factory(
        [](const std::string&, Graph& graph, const SessionOptions&) { return make_scripted_session(graph); });
    options_ = {.graph = &graph_, .logdir = directory_.path(), .clock = &clock_};
    options_.files = &disk_;
    options_.save_model_secs = Seconds{60};
    options_.save_summaries_secs = Seconds{0};
    options_.services.save_at_end = false;
    options_.services.saves.first_wait = Seconds{60};
  }
  ~FailingSavesTest() override { install_session_factory(nullptr); }

  template <typename Condition>
  static void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }
  // For what the journal has with its next mark.
  template <typename Condition>
  void pass_time_until(Condition&& condition) {
    eventually([&] {
      clock_.advance(Seconds{0.5});
      return condition();
    });
  }
  // Until the newest checkpoint is that of the step, and the journal knows that steps are made.
  void wait_for_save(Supervisor& sv, int64_t step) {
    const std::string prefix = sv.save_path() + "-" + std::to_string(step);
    eventually([&] { return sv.save_status().last_prefix == prefix && !status().failing_saves; });
  }
  void train(Session& session, int steps) {
    for (int i = 0; i < steps; ++i) session.run(train_);
  }
  TrainingStatus status() { return status_of(disk_, directory_.path(), clock_.wall_time()); }
  std::string runs() { return list_runs(disk_, {.directory = directory_.path()}, clock_.wall_time(), {}).text; }

  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_;
  CrampedDisk disk_{clock_.wall_time()};
  Graph graph_;
  Scope root_{graph_};
  Variable step_ = ops::create_global_step(root_);
  Operation train_ = ops::assign_add(root_, step_, ops::constant(root_, int64_t{1})).op();
  SupervisorOptions options_;
};

TEST_F(FailingSavesTest, AreNamedWithTheirCauseUntilOneWorks) {
  Supervisor sv(options_);
  sv.managed_session([&](Session& session) {
    wait_for_save(sv, 0);
    EXPECT_THAT(status().problems, IsEmpty());
    train(session, 7);
    disk_.is_full = true;
    clock_.advance(Seconds{60});
    eventually([&] { return sv.save_status().consecutive_failures == 1; });
    pass_time_until([&] { return status().failing_saves.has_value(); });
    EXPECT_THAT(status().problems,
                Contains(AllOf(HasSubstr(" failed: "), HasSubstr("model.ckpt-7"), HasSubstr(": No space left ("),
                               HasSubstr("steps 1 to 7 ("), HasSubstr("are in no checkpoint"))));
    EXPECT_FALSE(show_status(disk_, {directory_.path()}, clock_.wall_time(), {}).is_fine);
    EXPECT_THAT(runs(), AllOf(HasSubstr("running ("), HasSubstr(" failed save"), HasSubstr(" failed: ")));
    disk_.is_full = false;
    clock_.advance(Seconds{120});
    wait_for_save(sv, 7);
    train(session, 1);  // however long it took, steps are made
    pass_time_until([&] { return status().step == 8; });
    EXPECT_THAT(status().problems, IsEmpty());
    EXPECT_THAT(runs(), AllOf(HasSubstr(" failed save"), Not(HasSubstr(" failed: "))));
  });
}

TEST_F(FailingSavesTest, AreNoticedThoughTheJournalHasNoRoomEither) {
  Supervisor sv(options_);
  sv.managed_session([&](Session& session) {
    wait_for_save(sv, 0);
    train(session, 7);
    clock_.advance(Seconds{60});
    eventually([&] { return status().journal.history.runs().back().saves == 2; });
    train(session, 1);
    clock_.advance(Seconds{5});
    eventually([&] { return status().state == "training"; });
    disk_.fail_writes_after(0);
    clock_.advance(Seconds{60});
    eventually([&] { return sv.save_status().consecutive_failures == 1; });
    clock_.advance(Seconds{8000});
    EXPECT_EQ(status().failing_saves, std::nullopt);
    EXPECT_THAT(status().problems, Contains(HasSubstr("no sign of life for 2 h 1")));
    EXPECT_THAT(status().problems,
                Contains(AllOf(HasSubstr("the last checkpoint is 2 h 1"), HasSubstr("used to come every 1 min"))));
    disk_.heal();
  });
}

}  // namespace
}  // namespace longhaul::console

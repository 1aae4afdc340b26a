// What a save says of itself.
#include "longhaul/session/snapshots.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using SaverReport = SaverFixture;

TEST_F(SaverReport, IsOfTheLastSaveThatWroteSomething) {
  Saver saver(options);
  EXPECT_FALSE(saver.last_report());
  session->before_each_run([this](int, const Session::Request&) { clock.advance(Seconds{2}); });
  saver.save(*session, path, step);
  saver.save(*session, path, step, {.skip_if_saved = true});
  const std::optional<SaveReport> report = saver.last_report();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->prefix, path + "-0");
  EXPECT_EQ(report->step, 0);
  EXPECT_EQ(report->bytes, read_file(files, path + "-0.data-00000-of-00001").size());
  EXPECT_EQ(report->snapshot, Seconds{2});
  EXPECT_EQ(report->total, Seconds{2}) << "the writing takes no time on this clock";
}

// Snapshots that wait for a step under way.
class LateSnapshots : public Snapshots {
 public:
  static constexpr Seconds kWait{30};

  explicit LateSnapshots(testing::FakeClock& clock) : clock_(clock) {}

  std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) override {
    clock_.advance(kWait);
    return plain_snapshots()->take(session, fetches);
  }
  Seconds last_wait() const override { return kWait; }
  void prepare(const std::function<bool()>&) override {}
  uint64_t bytes_free() const override { return 0; }

 private:
  testing::FakeClock& clock_;
};

class LateSession : public testing::ScriptedSession, SnapshotKeeping {
 public:
  LateSession(Graph& graph, testing::FakeClock& clock)
      : ScriptedSession(graph), snapshots_(std::make_shared<LateSnapshots>(clock)) {}

  SessionCapabilities capabilities() override { return {.snapshot_keeping = this}; }

 private:
  std::shared_ptr<Snapshots> snapshots() override { return snapshots_; }

  const std::shared_ptr<Snapshots> snapshots_;
};

TEST_F(SaverReport, DoesNotCountTheStepThatASaveWaitedFor) {
  LateSession late(graph, clock);
  late.run(ops::global_variables_initializer(root));
  late.before_each_run([this](int, const Session::Request&) { clock.advance(Seconds{2}); });
  Saver saver(options);
  saver.save(late, path, step);
  EXPECT_EQ(saver.last_report()->snapshot, Seconds{2});
  EXPECT_EQ(saver.last_report()->total, Seconds{2});
}

}  // namespace
}  // namespace longhaul

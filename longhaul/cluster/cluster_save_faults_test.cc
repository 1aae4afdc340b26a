// A save and a restore of a model on several tasks, with a fault in each of their messages: of a few kinds in turn, and
// in the long tests of every kind.
#include <functional>
#include <optional>

#include "longhaul/cluster/cluster_saves_fixture.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

using ::testing::IsEmpty;

bool is_of_a_lost_session(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable || code == Code::kDeadlineExceeded;
}

// A checkpoint, a step, another checkpoint and its restore, once.
class SaveUnderFaults {
 public:
  explicit SaveUnderFaults(bool is_shared)
      : cluster_(is_shared ? TrainingCluster::Disks{} : TrainingCluster::Disks{{kPs, &own_}, {kPs1, &own_}}) {
    const auto session = cluster_.session(model_.graph);
    session->run(model_.init);
    saver_.save(*session, path(), model_.step);
    session->close();
    before_ = cluster_.network().sent().size();
  }

  void plan(NetworkFault fault) {
    fault.message += before_;
    cluster_.network().plan(fault);
  }

  void run() {
    const StreamLimits pieces{.piece = 2000, .in_flight = 4500};
    const auto session = cluster_.session(model_.graph, {.operation_timeout = Seconds{30}}, kWorker, pieces);
    attempt([&] { session->run(model_.train); });
    attempt([&] { saved_ = saver_.save(*session, path(), model_.step); });
    attempt([&] { saver_.restore(*session, path() + "-0"); });
    session->close();
  }

  uint64_t messages() { return cluster_.network().sent().size() - before_; }
  bool has_failed() const { return failures_ > 0; }

  // The first checkpoint is as it was; one that was saved is whole; one that was not is not there, or is whole, too.
  void expect_whole_checkpoints() {
    EXPECT_EQ(expect_whole_checkpoint(path() + "-0"), 0);
    for (const FoundCheckpoint& found : find_checkpoints(FileSystem::real(), directory_.path(), "model"))
      EXPECT_EQ(expect_whole_checkpoint(found.prefix), found.step);
    if (saved_) {
      EXPECT_TRUE(checkpoint_exists(FileSystem::real(), *saved_));
    }
  }

  // Nobody waits or holds anything, and the next chief saves and leaves nothing.
  void expect_a_new_start() {
    cluster_.clock().run_until([] { return false; }, Seconds{3});  // for a restart
    EXPECT_TRUE(cluster_.nothing_is_left(Seconds{120}));
    const auto session = cluster_.session(model_.graph);
    Saver next({.graph = &model_.graph});
    next.restore(*session, path() + "-0");
    session->run(model_.train);
    EXPECT_EQ(expect_whole_checkpoint(next.save(*session, path(), model_.step)), 1);
    session->close();
    EXPECT_TRUE(cluster_.nothing_is_left(Seconds{60}));
    EXPECT_THAT(leftovers_in(directory_.path()), IsEmpty());
  }

 private:
  std::string path() const { return directory_.file("model"); }

  void attempt(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      ++failures_;
      // After a restore that failed in the middle, or a ps that lost its variables, a read may find none.
      EXPECT_TRUE(is_of_a_lost_session(error.code()) || error.code() == Code::kFailedPrecondition)
          << code_name(error.code()) << ": " << error.what();
    }
  }

  testing::TemporaryDirectory directory_;
  OwnDisk own_;
  SavedCounting model_;
  TrainingCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
  Saver saver_{{.graph = &model_.graph}};
  std::optional<std::string> saved_;
  uint64_t before_ = 0;
  int failures_ = 0;
};

// Of `kinds` kinds in each message, by turns.
void expect_to_survive_faults(bool is_shared, size_t kinds_of_message) {
  uint64_t messages = 0;
  {
    SaveUnderFaults whole(is_shared);
    whole.run();
    EXPECT_FALSE(whole.has_failed());
    messages = whole.messages();
    whole.expect_whole_checkpoints();
  }
  ASSERT_GT(messages, 40u);
  const std::vector<NetworkFault::Kind> kinds = all_network_faults();
  for (uint64_t i = 1; i <= messages; ++i) {
    for (size_t kind = 0; kind < kinds_of_message && !::testing::Test::HasFailure(); ++kind) {
      const NetworkFault fault{.kind = kinds[(7 * i + kind) % kinds.size()], .message = i, .time = Seconds{1}};
      SCOPED_TRACE(to_string(fault));
      SaveUnderFaults save(is_shared);
      save.plan(fault);
      save.run();
      save.expect_whole_checkpoints();
      save.expect_a_new_start();
    }
  }
}

TEST(ClusterSaveFaults, ACheckpointIsWholeOrNotThere) {
  expect_to_survive_faults(/*is_shared=*/true, /*kinds_of_message=*/1);
}

TEST(ClusterSaveFaults, SoIsOneThatComesToTheChief) {
  expect_to_survive_faults(/*is_shared=*/false, /*kinds_of_message=*/1);
}

TEST(ClusterSaveFaults, SoIsEachWithFaultsOfEveryKindInEveryMessage) {
  LONGHAUL_NEEDS("long_tests", std::getenv("LONGHAUL_LONG_TESTS") != nullptr, "LONGHAUL_LONG_TESTS is not set");
  for (const bool is_shared : {true, false}) expect_to_survive_faults(is_shared, all_network_faults().size());
}

// One kind in every second message: whoever gets it dies, and comes back.
TEST(ClusterSaveFaults, ATaskThatDiesAtAnyMomentCommitsNothing) {
  SaveUnderFaults whole(/*is_shared=*/true);
  whole.run();
  const uint64_t messages = whole.messages();
  for (uint64_t i = 1; i <= messages && !::testing::Test::HasFailure(); i += 2) {
    const NetworkFault fault{.kind = NetworkFault::Kind::kKillReceiverAfter, .message = i, .time = Seconds{1}};
    SCOPED_TRACE(to_string(fault));
    SaveUnderFaults save(/*is_shared=*/true);
    save.plan(fault);
    save.run();
    save.expect_whole_checkpoints();
    save.expect_a_new_start();
  }
}

}  // namespace
}  // namespace longhaul

#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// Monitored trainings with a mirror, on machines that may be lost.
class MirroredMonitoredTraining : public MonitoredFixture {
 protected:
  MirroredMonitoredTraining() { mirror.directory = place.file("mirror"); }
  // Returns the step that it began with.
  int64_t train_steps(int count) {
    int64_t first = -1;
    monitored_training_session({.graph = &graph,
                                .checkpoint_dir = directory.path(),
                                .save_checkpoint_steps = 1,
                                .save_summaries_steps = int64_t{0},
                                .chief = {.mirror = mirror}},
                               [&](MonitoredSession& session) {
                                 first = session.run(step).item<int64_t>();
                                 for (int i = 0; i < count; ++i) session.run(train);
                               });
    return first;
  }
  // Another machine goes on: the disk of this one is gone.
  void lose_machine() {
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) std::filesystem::remove(entry);
  }
  static bool has_step(const std::string& logdir, int step) {
    return checkpoint_exists(FileSystem::real(), logdir + fmt::format("/model.ckpt-{}", step));
  }

  testing::TemporaryDirectory place;
  MirrorOptions mirror;
};

TEST_F(MirroredMonitoredTraining, GoesOnFromTheMirrorOnAFreshMachine) {
  EXPECT_EQ(train_steps(3), 0);
  EXPECT_TRUE(has_step(mirror.directory, 3));
  lose_machine();
  EXPECT_EQ(train_steps(2), 3);
  EXPECT_TRUE(has_step(directory.path(), 5));
  EXPECT_TRUE(has_step(mirror.directory, 5));
}

TEST_F(MirroredMonitoredTraining, WithoutADirectoryIsRefused) {
  EXPECT_THAT([&] { monitored_session_options({.graph = &graph, .chief = {.mirror = mirror}}); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("has nothing to mirror: set checkpoint_dir")));
}

}  // namespace
}  // namespace longhaul

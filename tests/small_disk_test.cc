// A training as a process, on a disk that has room for the checkpoints which are kept but not for one more; that is
// full; that is unmounted and mounted again. with_small_disk.sh mounts it, in a namespace of its own, and names its
// folder in LONGHAUL_SMALL_DISK.
#include <fmt/format.h>
#include <sys/mount.h>

#include "tests/preemption_fixture.h"
#include "tests/small_disk_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SmallDiskTest : public PreemptionProcessTest {
 protected:
  static constexpr uint64_t kCheckpoint = 2 << 20, kToWriteOne = kCheckpoint + kCheckpoint / 64 + (1 << 20);

  SmallDiskTest() { std::filesystem::create_directory(disk_.path() + "/run"); }
  std::string logdir() const override { return disk_.path() + "/run"; }

  int64_t save_after(const Process& training, int64_t step) const {
    training.send(SIGUSR2);
    return wait_for_checkpoint_after(step);
  }
  int checkpoints() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(logdir())) {
      count += entry.path().extension() == ".index" ? 1 : 0;
    }
    return count;
  }

  const SmallDisk disk_;
};

TEST_P(SmallDiskTest, WithoutRoomForOneMoreItDropsTheOldestFirst) {
  const auto training = start();
  int64_t step = wait_for_checkpoint_after(-1);
  while (checkpoints() < 4) step = save_after(*training, step);
  ASSERT_TRUE(disk_.leave_free(kToWriteOne / 2));
  for (int i = 0; i < 8; ++i) {
    step = save_after(*training, step);
    expect_whole(step);
    EXPECT_GE(checkpoints(), 2);
    ASSERT_FALSE(HasFailure()) << training->errors();
  }
  EXPECT_THAT(training->errors(), HasSubstr("is deleted before its turn"));
  EXPECT_THAT(training->errors(), Not(HasSubstr("could not be saved")));
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  EXPECT_EQ(newest_step(), number_after("ends at step ", training->output()));
  expect_to_go_on_from(newest_step());
}

TEST_P(SmallDiskTest, WithoutRoomForASecondItKeepsTheNewestAndSavesWhenThereIsRoom) {
  const auto training = start();
  const int64_t only = wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  ASSERT_TRUE(disk_.leave_free(kCheckpoint / 2));
  training->send(SIGUSR2);
  EXPECT_TRUE(soon([&] { return training->errors().find("nothing was written. Make room") != std::string::npos; }))
      << training->errors();
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(300)));
  EXPECT_EQ(newest_step(), only);
  expect_whole(only);
  disk_.drop_ballast();
  const int64_t next = wait_for_checkpoint_after(only);
  expect_whole(next);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
}

// The directory is mounted by itself; below it is the empty folder on which it was.
TEST_P(SmallDiskTest, UnmountedForAWhileItHasNothingWrittenBelowItAndSavesWhenItIsBack) {
  const std::string kept = disk_.path() + "/kept";
  std::filesystem::create_directory(kept);
  const auto mount_run = [&] { return mount(kept.c_str(), logdir().c_str(), nullptr, MS_BIND, nullptr); };
  ASSERT_EQ(mount_run(), 0);
  const auto training = start();
  const int64_t first = wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  ASSERT_EQ(umount2(logdir().c_str(), MNT_DETACH), 0);
  training->send(SIGUSR2);
  EXPECT_TRUE(soon([&] { return training->errors().find("unmounted or moved") != std::string::npos; }))
      << training->errors();
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(300)));
  EXPECT_TRUE(std::filesystem::is_empty(logdir()));
  ASSERT_EQ(mount_run(), 0);
  wait_for_checkpoint_after(first);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  EXPECT_EQ(newest_step(), number_after("ends at step ", training->output()));
  EXPECT_EQ(umount2(logdir().c_str(), MNT_DETACH), 0);
}

INSTANTIATE_TEST_SUITE_P(, SmallDiskTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul

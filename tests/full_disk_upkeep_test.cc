// `longhaul prune`, `pin` and `unpin` on a disk without a free byte (small_disk_fixture.h).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"
#include "tests/small_disk_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The number of floats in each checkpoint: the smallest leaves little room when it is deleted.
class FullDiskTest : public ::testing::TestWithParam<size_t> {
 protected:
  FullDiskTest() {
    files_.make_directories(run_);
    CheckpointState state;
    for (int64_t step = 1; step <= 4; ++step) {
      BundleWriter writer(files_, prefix(step));
      writer.add("w", Tensor::of<float>(std::vector<float>(GetParam(), 1)));
      writer.finish();
      state.all_model_checkpoint_paths.push_back(prefix(step));
    }
    state.model_checkpoint_path = prefix(4);
    write_checkpoint_state(files_, run_, state);
  }
  void fill() {
    EXPECT_TRUE(disk_.leave_free(0));
    EXPECT_EQ(std::filesystem::space(disk_.path()).free, 0u);
  }
  std::string prefix(int64_t step) const { return fmt::format("{}/model.ckpt-{}", run_, step); }

  int longhaul(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LONGHAUL_PROGRAM);
    testing::Process program(arguments, output_.file("output"));
    const int status = program.wait();
    said_ = program.output() + program.errors();
    return status;
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> steps;
    for (const FoundCheckpoint& one : find_checkpoints(files_, run_, "")) steps.push_back(one.step.value_or(-1));
    return steps;
  }

  const testing::TemporaryDirectory output_;
  const SmallDisk disk_;
  FileSystem& files_ = FileSystem::real();
  const std::string run_ = disk_.path() + "/run";
  std::string said_;
};

TEST_P(FullDiskTest, PruneMakesRoom) {
  fill();
  EXPECT_EQ(longhaul({"prune", run_, "--keep=2"}), 0) << said_;
  EXPECT_EQ(longhaul({"prune", run_, "--keep=1", "--delete"}), 0) << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("model.ckpt-1 "), HasSubstr("3 checkpoints, "), HasSubstr(" are deleted")));
  EXPECT_THAT(steps(), ElementsAre(4));
  const CheckpointState state = read_checkpoint_state(files_, run_).state;
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre(prefix(4)));
  EXPECT_THAT(state.paths_marked_for_deletion, ElementsAre());
  EXPECT_THAT(files_.list(run_),
              ::testing::UnorderedElementsAre("checkpoint", "model.ckpt-4.index", "model.ckpt-4.data-00000-of-00001"));
}

TEST_P(FullDiskTest, PruneDeletesNothingWhereAChiefOfAnotherMachineMayTrain) {
  OwnerRecord chief{.token = std::string(32, 'a'), .process = this_process(), .since = 1, .heartbeat = 1};
  chief.process.host = "far-away";
  chief.process.boot_id = "another";
  write_owner(files_, run_, chief);
  namespace fs = std::filesystem;
  fs::last_write_time(owner_path(run_), fs::last_write_time(owner_path(run_)) - std::chrono::hours(1));
  fill();
  EXPECT_EQ(longhaul({"prune", run_, "--keep=1", "--delete"}), 1) << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("nothing was deleted"), HasSubstr("far-away"), HasSubstr("make room elsewhere")));
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
}

TEST_P(FullDiskTest, APinIsRefusedWithTheRemedy) {
  ASSERT_EQ(longhaul({"pin", prefix(1)}), 0) << said_;
  fill();
  EXPECT_EQ(longhaul({"pin", prefix(2)}), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("model.ckpt-2 is not pinned: make room elsewhere on the disk"),
                           HasSubstr("`longhaul prune " + run_ + "` shows")));
  EXPECT_EQ(longhaul({"unpin", prefix(1)}), 1);
  EXPECT_THAT(said_, HasSubstr("model.ckpt-1 is still pinned: make room"));
  EXPECT_EQ(longhaul({"prune", run_, "--keep=1", "--delete"}), 0) << said_;
  EXPECT_THAT(steps(), ElementsAre(1, 4));
  EXPECT_EQ(longhaul({"pin", prefix(4)}), 0) << said_;
}

// As of a disk that is mounted to look at a training of another machine.
TEST_P(FullDiskTest, ADiskThatNobodyMayWriteToIsReadAndAWriteIsRefused) {
  ASSERT_EQ(::mount("none", disk_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0) << std::strerror(errno);
  const std::vector<std::vector<std::string>> looks = {{"ls", run_},
                                                       {"show", prefix(4)},
                                                       {"show", prefix(4), "w"},
                                                       {"verify", run_},
                                                       {"prune", run_},
                                                       {"diff", prefix(1), prefix(4)},
                                                       {"prune", run_, "--keep=1"},
                                                       {"ls", run_, "--json"}};
  for (const auto& look : looks) EXPECT_EQ(longhaul(look), 0) << look[0] << ": " << said_;
  for (const auto& change : {std::vector<std::string>{"prune", run_, "--keep=1", "--delete"}, {"pin", prefix(1)}}) {
    EXPECT_EQ(longhaul(change), 1) << change[0] << ": " << said_;
    EXPECT_THAT(said_, HasSubstr("Read-only file system"));
  }
  ASSERT_EQ(::mount("none", disk_.path().c_str(), nullptr, MS_REMOUNT, nullptr), 0) << std::strerror(errno);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
}

INSTANTIATE_TEST_SUITE_P(, FullDiskTest, ::testing::Values(1, 200'000),
                         [](const auto& count) { return fmt::format("Of{}Floats", count.param); });

}  // namespace
}  // namespace longhaul

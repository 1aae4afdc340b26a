#include "longhaul/console/upkeep/pruning.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PruningTest : public CheckpointsTest {
 protected:
  void write_steps(const std::vector<int64_t>& steps) {
    CheckpointState state;
    for (const int64_t step : steps) {
      write_step(step);
      state.all_model_checkpoint_paths.push_back(path("model.ckpt-" + std::to_string(step)));
      state.all_model_checkpoint_timestamps.push_back(static_cast<double>(step));
    }
    state.model_checkpoint_path = state.all_model_checkpoint_paths.back();
    write_checkpoint_state(files_, directory_.path(), state);
  }
  Report prune(PruneOptions options) {
    options.directory = directory_.path();
    return prune_checkpoints(files_, options, {});
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> steps;
    for (const FoundCheckpoint& one : find_checkpoints(files_, directory_.path(), "")) {
      steps.push_back(one.step.value_or(-1));
    }
    return steps;
  }
};

TEST_F(PruningTest, DeletesNothingUnlessToldTo) {
  write_steps({1, 2, 3, 4});
  const auto before = files_.list(directory_.path());
  const Report report = prune({.keep = 2});
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("model.ckpt-1"), HasSubstr("would be deleted"), HasSubstr("kept: the latest"),
                    HasSubstr("2 checkpoints, "), HasSubstr("run it again with --delete")));
  EXPECT_EQ(files_.list(directory_.path()), before);
}

TEST_F(PruningTest, KeepsTheNewestAndWhatIsKeptForAReason) {
  write_steps({10, 15, 20, 25, 30, 35});
  write("own", {{"w", Tensor::scalar(1.0f)}});
  write_retention(files_, directory_.path(), {{path("model.ckpt-15"), {.pinned = true}}});
  const Report report = prune({.keep = 1, .keep_multiples = 20, .deletes = true});
  EXPECT_THAT(steps(), ElementsAre(-1, 15, 20, 35));
  EXPECT_THAT(report.text, AllOf(HasSubstr("kept: pinned"), HasSubstr("a multiple of 20"), HasSubstr("no step")));
  const CheckpointState state = read_checkpoint_state(files_, directory_.path()).state;
  EXPECT_THAT(state.all_model_checkpoint_paths,
              ElementsAre(path("model.ckpt-15"), path("model.ckpt-20"), path("model.ckpt-35")));
  EXPECT_THAT(state.all_model_checkpoint_timestamps, ElementsAre(15, 20, 35));
  EXPECT_TRUE(state.paths_marked_for_deletion.empty());
  EXPECT_FALSE(files_.exists(path("chief.owner")));
}

TEST_F(PruningTest, KeepsWhatTheStateFileNamesEvenIfItIsOld) {
  write_steps({10, 20, 30});
  CheckpointState state;
  state.model_checkpoint_path = path("model.ckpt-10");
  write_checkpoint_state(files_, directory_.path(), state);
  prune({.keep = 1, .deletes = true});
  EXPECT_THAT(steps(), ElementsAre(10, 30));
}

TEST_F(PruningTest, NothingIsDeletedIfTheLatestIsDamaged) {
  write_steps({10, 20, 30});
  damage("model.ckpt-30.data-00000-of-00001");
  EXPECT_THROW(prune({.keep = 1, .deletes = true}), DataLossError);
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
}

TEST_F(PruningTest, NothingIsDeletedIfANewerOneIsNotWhole) {
  write_steps({10, 20, 30});
  const std::string data = path("model.ckpt-30.data-00000-of-00001");
  write_file_atomically(files_, data, read_file(files_, data).substr(1));
  EXPECT_THROW(prune({.keep = 1, .deletes = true}), DataLossError);
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
}

TEST_F(PruningTest, NothingIsDeletedIfNobodyKnowsWhatIsPinned) {
  write_steps({10, 20, 30});
  const std::string file = retention_path(directory_.path());
  for (const std::string text :
       {"longhaul retention 2\n", "what?\n", "longhaul retention 1\nmetric nan checkpoint model.ckpt-10\n"}) {
    write_file_atomically(files_, file, text);
    EXPECT_THROW(prune({.keep = 1, .deletes = true}), FailedPreconditionError);
    const Report preview = prune({.keep = 1});
    EXPECT_THAT(preview.text, AllOf(HasSubstr("--delete will refuse"), HasSubstr(file))) << text;
    EXPECT_FALSE(preview.is_fine);
  }
  files_.remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THROW(prune({.keep = 1, .deletes = true}), FailedPreconditionError);
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
  files_.remove(file);
  prune({.keep = 1, .deletes = true});
  EXPECT_THAT(steps(), ElementsAre(30));
}

TEST_F(PruningTest, NothingIsDeletedIfNobodyKnowsWhatTheStateFileNames) {
  write_steps({10, 20, 30});
  const std::string file = path(kDefaultStateFile);
  const auto is_refused = [&] {
    EXPECT_THROW(prune({.keep = 1, .deletes = true}), FailedPreconditionError);
    const Report preview = prune({.keep = 1});
    EXPECT_THAT(preview.text, AllOf(HasSubstr("--delete will refuse"), HasSubstr("Repair " + file)));
    EXPECT_FALSE(preview.is_fine);
    EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
  };
  for (const std::string text : {"model_checkpoint_path: model.ckpt-10\n", "", "all_model_checkpoint_paths: \"m\"\n"}) {
    write_file_atomically(files_, file, text);
    is_refused();
  }
  files_.remove(file);
  ASSERT_EQ(::symlink("none", file.c_str()), 0);
  is_refused();
  files_.remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  is_refused();
  files_.remove(file);
  prune({.keep = 1, .deletes = true});
  EXPECT_THAT(steps(), ElementsAre(30)) << "without a state file the newest is the latest";
}

TEST_F(PruningTest, NothingIsDeletedUnderARunningTraining) {
  write_steps({10, 20, 30});
  const DirectoryLock chief(directory_.path());
  EXPECT_THROW(prune({.keep = 1, .deletes = true}), DirectoryLockedError);
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
  EXPECT_NO_THROW(prune({.keep = 1})) << "looking is harmless";
}

// Of whose files each that is removed leaves so much room.
class FullDisk : public testing::FaultyFileSystem {
 public:
  explicit FullDisk(uint64_t bytes_of_file) : bytes_of_file_(bytes_of_file) { fail_writes_after(0); }
  void remove(const std::string& path) override {
    FaultyFileSystem::remove(path);
    if (path.find("model.ckpt") != path.npos) fail_writes_after(room_ += bytes_of_file_);
  }
  FileLock::Attempt try_lock(const std::string& path) override {
    return has_locks ? FaultyFileSystem::try_lock(path) : FileLock::Attempt{};
  }

  bool has_locks = true;

 private:
  const uint64_t bytes_of_file_;
  uint64_t room_ = 0;
};

TEST_F(PruningTest, OnAFullDiskTheOldestMakesRoomForTheLockOfTheOthers) {
  for (const uint64_t bytes : {200u, 1000u, 1'000'000u}) {
    write_steps({1, 2, 3, 4, 5, 6, 7});
    FullDisk disk(bytes);
    const Report report = prune_checkpoints(disk, {.directory = directory_.path(), .keep = 1, .deletes = true}, {});
    EXPECT_THAT(steps(), ElementsAre(7)) << bytes;
    EXPECT_THAT(report.text, AllOf(HasSubstr("model.ckpt-1 "), HasSubstr("6 checkpoints, ")));
    EXPECT_EQ(report.json["checkpoints"].size(), 7u);
    const CheckpointState state = read_checkpoint_state(files_, directory_.path()).state;
    EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre(path("model.ckpt-7")));
    EXPECT_TRUE(state.paths_marked_for_deletion.empty());
  }
}

TEST_F(PruningTest, OnAFullDiskNothingIsDeletedUnlessTheFlockKeepsOthersOut) {
  write_steps({1, 2, 3, 4});
  const auto is_refused = [&](FullDisk& disk, const char* why) {
    try {
      prune_checkpoints(disk, {.directory = directory_.path(), .keep = 1, .deletes = true}, {});
      ADD_FAILURE() << why;
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("nothing was deleted"), HasSubstr(why), HasSubstr("make room")));
    }
    EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
  };
  FullDisk without_locks(1'000'000);
  without_locks.has_locks = false;
  is_refused(without_locks, "the file system has no locks");
  OwnerRecord chief{.token = std::string(32, 'a'), .process = this_process(), .limit = 0.001};
  chief.process.boot_id = "another";
  write_owner(files_, directory_.path(), chief);
  const timespec long_ago[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, owner_path(directory_.path()).c_str(), long_ago, 0), 0);
  FullDisk disk(1'000'000);
  is_refused(disk, "a chief may still train there");
}

TEST_F(PruningTest, OnAFullDiskWhatKeepsCheckpointsCountsAsEver) {
  write_steps({1, 2, 3, 4});
  write_retention(files_, directory_.path(), {{path("model.ckpt-1"), {.pinned = true}}});
  const PruneOptions options{.directory = directory_.path(), .keep = 1, .deletes = true};
  damage("model.ckpt-4.data-00000-of-00001");
  FullDisk disk(1'000'000);
  EXPECT_THROW(prune_checkpoints(disk, options, {}), DataLossError);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
  write_step(4);
  FullDisk again(1'000'000);
  prune_checkpoints(again, options, {});
  EXPECT_THAT(steps(), ElementsAre(1, 4));
}

TEST_F(PruningTest, WhereDeletingFreesNothingOneIsDeletedAndTheErrorSaysSo) {
  write_steps({1, 2, 3, 4});
  FullDisk disk(0);
  try {
    prune_checkpoints(disk, {.directory = directory_.path(), .keep = 1, .deletes = true}, {});
    ADD_FAILURE();
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("model.ckpt-1 was deleted"), HasSubstr("snapshots")));
  }
  EXPECT_THAT(steps(), ElementsAre(2, 3, 4));
  testing::FaultyFileSystem with_room;
  with_room.fail_writes_after(64'000);
  prune_checkpoints(with_room, {.directory = directory_.path(), .keep = 1, .deletes = true}, {});
  EXPECT_THAT(steps(), ElementsAre(4));
}

TEST_F(PruningTest, ToldHowFarTheLatestIsRead) {
  write_steps({1, 2});
  uint64_t read = 0, all = 0;
  prune_checkpoints(files_, {.directory = directory_.path(), .keep = 1, .deletes = true}, {},
                    [&](uint64_t done, uint64_t total) { read = done, all = total; });
  EXPECT_GT(all, 400u);
  EXPECT_EQ(read, all);
}

TEST_F(PruningTest, AFailureAtAnyMomentLeavesTheLatestAndWholeCheckpoints) {
  write_steps({10, 20, 30});
  // False: it was done before that operation.
  const auto fails = [&](testing::FaultyFileSystem& files, int n) {
    files.fail_operation(n - 1, testing::FaultyFileSystem::Fault::kForGood);
    bool has_failed = false;
    try {
      prune_checkpoints(files, {.directory = directory_.path(), .keep = 1, .deletes = true}, {});
    } catch (const Error&) {
      has_failed = true;
    }
    EXPECT_FALSE(steps().empty());
    EXPECT_EQ(steps().back(), 30) << n;
    return has_failed;
  };
  for (int n = 1; n < 40; ++n) {
    testing::FaultyFileSystem files;
    fails(files, n);
  }
  for (int n = 1; n < 100; ++n) {
    write_steps({10, 20, 30});
    FullDisk files(1'000'000);
    if (!fails(files, n)) break;
    ASSERT_LT(n, 99);
  }
}

}  // namespace
}  // namespace longhaul::console

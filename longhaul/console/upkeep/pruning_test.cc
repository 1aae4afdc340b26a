#include "longhaul/console/upkeep/pruning.h"

#include <sys/stat.h>
#include <unistd.h>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/io/lock/directory_lock.h"
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

// `longhaul status` says so.
TEST_F(PruningTest, OnAFullDiskItNeedsLittleRoomAndDeletesNothingWithoutIt) {
  write_steps({1, 2, 3, 4});
  testing::FaultyFileSystem disk;
  const PruneOptions options{.directory = directory_.path(), .keep = 1, .deletes = true};
  disk.fail_writes_after(0);
  EXPECT_THROW(prune_checkpoints(disk, options, {}), ResourceExhaustedError);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
  disk.fail_writes_after(64'000);
  prune_checkpoints(disk, options, {});
  EXPECT_THAT(steps(), ElementsAre(4));
}

TEST_F(PruningTest, AFailureAtAnyMomentLeavesTheLatestAndWholeCheckpoints) {
  write_steps({10, 20, 30});
  for (int n = 1; n < 40; ++n) {
    testing::FaultyFileSystem files;
    files.fail_operation(n - 1, testing::FaultyFileSystem::Fault::kForGood);
    PruneOptions options{.directory = directory_.path(), .keep = 1, .deletes = true};
    try {
      prune_checkpoints(files, options, {});
    } catch (const Error&) {
    }
    ASSERT_FALSE(steps().empty());
    ASSERT_EQ(steps().back(), 30) << n;
  }
}

}  // namespace
}  // namespace longhaul::console

#include "longhaul/console/upkeep/pinning.h"

#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul::console {
namespace {

using ::testing::ElementsAre;

// Where something else happens, once.
class InterruptedFileSystem : public testing::FaultyFileSystem {
 public:
  std::function<void()> before_lock{}, after_state{};

  FileLock::Attempt try_lock(const std::string& path) override {
    if (before_lock) std::exchange(before_lock, {})();
    return FaultyFileSystem::try_lock(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    FaultyFileSystem::rename(from, to);
    if (after_state && base_name(to) == "checkpoint") std::exchange(after_state, {})();
  }
};

class PinningTest : public CheckpointsTest {
 protected:
  void pin(int64_t step, bool is_pinned = true) {
    pin_checkpoints(files_, {path("model.ckpt-" + std::to_string(step))}, is_pinned);
  }
  void save(ManagedCheckpoints& training, int64_t step) {
    write_step(step);
    training.record(path("model.ckpt-" + std::to_string(step)), {});
  }
  std::vector<int64_t> pinned() {
    std::vector<int64_t> steps;
    for (const ListedCheckpoint& one : checkpoints_in(files_, directory_.path())) {
      if (one.is_pinned) steps.push_back(one.step.value());
    }
    return steps;
  }
};

TEST_F(PinningTest, PinsAndUnpins) {
  for (const int64_t step : {1, 2, 3}) write_step(step);
  pin(1);
  pin(1);
  pin_checkpoints(files_, {directory_.path()}, true);
  EXPECT_THAT(pinned(), ElementsAre(1, 3));
  pin(1, false);
  pin(2, false);
  EXPECT_THAT(pinned(), ElementsAre(3));
  pin(3, false);
  EXPECT_TRUE(read_retention(files_, directory_.path()).empty()) << "no line that would have them deleted";
}

TEST_F(PinningTest, KeepsWhatElseTheFileHas) {
  for (const int64_t step : {1, 2, 3}) write_step(step);
  write_retention(
      files_, directory_.path(),
      {{path("model.ckpt-1"), {.pinned = true, .fallen_out = true}}, {path("model.ckpt-2"), {.metric = 0.5}}});
  pin(2);
  pin(1, false);
  const KeptCheckpoints kept = read_retention(files_, directory_.path());
  EXPECT_EQ(kept.at(path("model.ckpt-2")), (KeptCheckpoint{.pinned = true, .metric = 0.5}));
  EXPECT_EQ(kept.at(path("model.ckpt-1")), (KeptCheckpoint{.fallen_out = true})) << "the next save deletes it";
}

TEST_F(PinningTest, ATrainingThatRunsTakesItOver) {
  ManagedCheckpoints training(Retention{.max_to_keep = 1}, files_, Clock::real());
  const auto save = [&](int64_t step) { this->save(training, step); };
  save(1);
  pin(1);
  save(2);
  save(3);
  EXPECT_TRUE(checkpoint_exists(files_, path("model.ckpt-1")));
  EXPECT_FALSE(checkpoint_exists(files_, path("model.ckpt-2")));
  pin(1, false);
  save(4);
  EXPECT_FALSE(checkpoint_exists(files_, path("model.ckpt-1")));
}

TEST_F(PinningTest, AFileThatCannotBeReadIsNotReplaced) {
  write_step(1);
  const std::string file = retention_path(directory_.path());
  for (const std::string text :
       {"longhaul retention 2\n", "what?\n", "longhaul retention 1\nmetric nan checkpoint m\n"}) {
    write_file_atomically(files_, file, text);
    try {
      pin(1);
      ADD_FAILURE() << text;
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr(file), ::testing::HasSubstr("move it away")));
    }
    EXPECT_EQ(read_file(files_, file), text);
  }
  files_.remove(file);
  ASSERT_EQ(::symlink("not mounted", file.c_str()), 0);
  EXPECT_THROW(pin(1), FailedPreconditionError);
}

TEST_F(PinningTest, ThoseThatAreMadeAtTheSameTimeAreAllMade) {
  constexpr int64_t kPins = 20;
  for (int64_t step = 1; step <= kPins; ++step) write_step(step);
  std::vector<std::thread> threads;
  for (int64_t step = 1; step <= kPins; ++step) threads.emplace_back([this, step] { pin(step); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pinned().size(), static_cast<size_t>(kPins));
  EXPECT_FALSE(files_.exists(retention_path(directory_.path()) + ".lock"));
}

TEST_F(PinningTest, ATrainingKeepsWhatIsPinnedWhileItSaves) {
  // A pin that is made when the save has read the file, and one when it has replaced it.
  for (const bool is_early : {true, false}) {
    InterruptedFileSystem files;
    const DirectoryLock chief(directory_.path(), {.files = &files});
    ManagedCheckpoints training(Retention{.max_to_keep = 1}, files, Clock::real());
    const auto save = [&](int64_t step) { this->save(training, step); };
    save(1);
    pin(1);
    save(2);
    (is_early ? files.before_lock : files.after_state) = [&] { pin(2); };
    save(3);
    EXPECT_TRUE(checkpoint_exists(files_, path("model.ckpt-2"))) << is_early;
    save(4);
    EXPECT_THAT(pinned(), ElementsAre(1, 2)) << is_early;
    EXPECT_FALSE(checkpoint_exists(files_, path("model.ckpt-3")));
    for (const int64_t step : {1, 2}) pin(step, false);
  }
}

TEST_F(PinningTest, ATrainingKeepsAFileThatItCannotReadBesideItsOwn) {
  write_step(1);
  const std::string file = retention_path(directory_.path());
  write_file_atomically(files_, file, "longhaul retention 2\n");
  ManagedCheckpoints training(Retention{.max_to_keep = 1}, files_, Clock::real());
  training.record(path("model.ckpt-1"), {});
  EXPECT_EQ(read_file(files_, file + ".unusable"), "longhaul retention 2\n");
  EXPECT_TRUE(find_retention(files_, directory_.path()).has_value());
}

TEST_F(PinningTest, NoneIsMadeInAnotherDirectory) {
  write_step(1);
  const testing::TemporaryDirectory other;
  write_checkpoint_state(files_, other.path(), {.model_checkpoint_path = path("model.ckpt-1")});
  EXPECT_THROW(pin_checkpoints(files_, {other.path()}, true), FailedPreconditionError);
  EXPECT_THAT(pinned(), ElementsAre());
}

TEST_F(PinningTest, OnAFullDiskTheErrorSaysWhatToDo) {
  write_step(1);
  testing::FaultyFileSystem disk;
  disk.fail_writes_after(0);
  try {
    pin_checkpoints(disk, {path("model.ckpt-1")}, true);
    ADD_FAILURE();
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("model.ckpt-1 is not pinned: make room"),
                                               ::testing::HasSubstr("longhaul prune " + directory_.path())));
  }
  EXPECT_THAT(pinned(), ElementsAre());
}

TEST_F(PinningTest, WhatIsNotThereIsAnErrorAndChangesNothing) {
  write_step(1);
  EXPECT_THROW(pin_checkpoints(files_, {path("model.ckpt-1"), path("model.ckpt-7")}, true), NotFoundError);
  EXPECT_FALSE(files_.exists(retention_path(directory_.path())));
}

}  // namespace
}  // namespace longhaul::console

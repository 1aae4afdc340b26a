#include "longhaul/console/checkpoints/checkpoint_listing.h"

#include <sys/stat.h>
#include <unistd.h>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using State = ListedCheckpoint::State;

class CheckpointListingTest : public CheckpointsTest {
 protected:
  Report report() {
    const double now = files_.modified_at(directory_.path()) + 90;
    return list_checkpoints(files_, {directory_.path()}, now, {});
  }
};

TEST_F(CheckpointListingTest, HasEachCheckpointWithItsStepAgeAndSize) {
  write_step(9);
  write_step(100);
  write_retention(files_, directory_.path(), {{path("model.ckpt-9"), {.pinned = true, .metric = 0.5}}});
  const auto found = checkpoints_in(files_, directory_.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 9);
  EXPECT_TRUE(found[0].is_pinned);
  EXPECT_EQ(found[0].metric, 0.5);
  EXPECT_FALSE(found[0].is_latest);
  EXPECT_TRUE(found[1].is_latest);
  EXPECT_GT(found[1].bytes, 400u);
  const Report listed = report();
  EXPECT_THAT(listed.text, AllOf(HasSubstr("model.ckpt-9 "), HasSubstr("pinned, metric 0.5"), HasSubstr("latest"),
                                 HasSubstr("1 min 30 s ago"), HasSubstr("in 2 checkpoints, ")));
  EXPECT_EQ(listed.json["directories"][0]["checkpoints"][1]["step"], 100);
  EXPECT_EQ(listed.json["directories"][0]["checkpoints"][1]["latest"], true);
  EXPECT_TRUE(listed.is_fine);
}

TEST_F(CheckpointListingTest, SaysWhatIsNoWholeCheckpoint) {
  write_step(1);
  write_step(2);
  write_step(3);
  write_step(4);
  mark_corrupt(files_, path("model.ckpt-1"));
  files_.remove(path("model.ckpt-2.data-00000-of-00001"));
  files_.remove(path("model.ckpt-4.index"));
  std::map<int64_t, State> states;
  for (const ListedCheckpoint& one : checkpoints_in(files_, directory_.path())) states[one.step.value()] = one.state;
  EXPECT_EQ(states, (std::map<int64_t, State>{
                        {1, State::kSetAside}, {2, State::kLacksData}, {3, State::kComplete}, {4, State::kNoIndex}}));
  EXPECT_THAT(report().text, AllOf(HasSubstr("damaged, set aside"), HasSubstr("data files are missing"),
                                   HasSubstr("being written, or left by a crash")));
}

TEST_F(CheckpointListingTest, OneWhoseFilesAreNotWholeIsNotTheLatest) {
  for (const int64_t step : {1, 2, 3}) write_step(step);
  const std::string data = path("model.ckpt-3.data-00000-of-00001");
  write_file_atomically(files_, data, read_file(files_, data).substr(1));
  files_.remove(path("model.ckpt-2.index"));
  ASSERT_EQ(::mkfifo(path("model.ckpt-2.index").c_str(), 0600), 0);
  const auto found = checkpoints_in(files_, directory_.path());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0].is_latest);
  EXPECT_EQ(found[1].state, State::kDamaged);
  EXPECT_EQ(found[2].state, State::kDamaged);
  EXPECT_FALSE(found[2].is_latest);
  EXPECT_THAT(report().text, HasSubstr("damaged: model.ckpt-3.data-00000-of-00001 has 407 bytes of 408"));
}

TEST_F(CheckpointListingTest, OneWhoseFilesAreLinksToNowhereIsDamagedAndHidesNoOther) {
  for (const int64_t step : {1, 2, 3, 4}) write_step(step);
  const auto link = [&](const std::string& name, const std::string& target) {
    files_.remove(path(name));
    ASSERT_EQ(::symlink(target.c_str(), path(name).c_str()), 0);
  };
  link("model.ckpt-2.data-00000-of-00001", "none");
  link("model.ckpt-3.data-00000-of-00001", "model.ckpt-3.data-00000-of-00001");
  link("model.ckpt-4.index", "model.ckpt-4.index");
  const auto found = checkpoints_in(files_, directory_.path());
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].is_latest);
  for (const size_t i : {1, 2, 3}) {
    EXPECT_EQ(found[i].state, State::kDamaged) << i;
    EXPECT_THAT(found[i].damage, HasSubstr("is a link that leads nowhere")) << i;
  }
}

TEST_F(CheckpointListingTest, WhatARestartTakesFromAnotherDirectoryIsNamed) {
  write_step(1);
  const testing::TemporaryDirectory other;
  write_checkpoint_state(files_, other.path(), {.model_checkpoint_path = path("model.ckpt-1")});
  EXPECT_EQ(latest_elsewhere(files_, other.path()), path("model.ckpt-1"));
  EXPECT_THAT(list_checkpoints(files_, {other.path()}, 0, {}).text,
              HasSubstr("a restart takes " + path("model.ckpt-1") + ", which is not in this directory"));
  EXPECT_EQ(latest_elsewhere(files_, directory_.path()), std::nullopt);
}

TEST_F(CheckpointListingTest, OfSeveralOneThatIsNotThereKeepsNoneFromBeingListed) {
  write_step(1);
  const Report report = list_checkpoints(files_, {path("none"), directory_.path()}, 0, {});
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr(path("none") + ":\n"), HasSubstr("model.ckpt-1")));
  EXPECT_THROW(list_checkpoints(files_, {path("none")}, 0, {}), NotFoundError);
}

TEST_F(CheckpointListingTest, ADirectoryMayHaveNone) {
  EXPECT_THAT(report().text, HasSubstr("no checkpoint\n"));
  EXPECT_TRUE(report().is_fine);
  EXPECT_THROW(checkpoints_in(files_, path("none")), NotFoundError);
}

TEST_F(CheckpointListingTest, AHostileFileNameIsShownHarmlessly) {
  write("\x1b[2J-7", {{"w", Tensor::scalar(1.0f)}});
  EXPECT_THAT(report().text, HasSubstr("\\x1b[2J-7"));
  EXPECT_THAT(report().text, ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace longhaul::console

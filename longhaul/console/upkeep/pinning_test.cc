#include "longhaul/console/upkeep/pinning.h"

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"

namespace longhaul::console {
namespace {

using ::testing::ElementsAre;

class PinningTest : public CheckpointsTest {
 protected:
  void pin(int64_t step, bool is_pinned = true) {
    pin_checkpoints(files_, {path("model.ckpt-" + std::to_string(step))}, is_pinned);
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
  const auto save = [&](int64_t step) {
    write_step(step);
    training.record(path("model.ckpt-" + std::to_string(step)), {});
  };
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

TEST_F(PinningTest, WhatIsNotThereIsAnErrorAndChangesNothing) {
  write_step(1);
  EXPECT_THROW(pin_checkpoints(files_, {path("model.ckpt-1"), path("model.ckpt-7")}, true), NotFoundError);
  EXPECT_FALSE(files_.exists(retention_path(directory_.path())));
}

}  // namespace
}  // namespace longhaul::console

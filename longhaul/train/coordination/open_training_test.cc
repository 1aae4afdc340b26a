#include "longhaul/train/coordination/open_training.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace longhaul {
namespace {

TEST(OpenTraining, AnExitInTheMiddleIsTold) {
  EXPECT_EXIT(
      {
        const Coordinator coord;
        const OpenTraining training(coord);
        std::exit(3);
      },
      ::testing::ExitedWithCode(3), "exit\\(\\) before the training run has ended");
}

TEST(OpenTraining, AnExitAfterItsEndIsNot) {
  EXPECT_EXIT(
      {
        const Coordinator coord;
        {
          const OpenTraining training(coord);
        }
        std::exit(3);
      },
      ::testing::ExitedWithCode(3), "^$");
}

TEST(OpenTraining, KnowsWhetherAStopReachesOne) {
  const Coordinator coord, other;
  const Coordinator copy = coord;
  EXPECT_FALSE(OpenTraining::is_only_elsewhere(coord)) << "there is none";
  std::optional<OpenTraining> training(coord);
  EXPECT_FALSE(OpenTraining::is_only_elsewhere(copy));
  EXPECT_TRUE(OpenTraining::is_only_elsewhere(other));
  training.reset();
  EXPECT_FALSE(OpenTraining::is_only_elsewhere(other));
}

}  // namespace
}  // namespace longhaul

#include "examples/tic_tac_toe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::examples {
namespace {

using ::testing::ElementsAre;

TicTacToe after(const std::vector<int>& cells) {
  TicTacToe game;
  for (const int cell : cells) game.play(cell);
  return game;
}

TEST(TicTacToeTest, ThreeInALineWin) {
  EXPECT_EQ(after({0, 3, 1, 4, 2}).winner(), 1);
  EXPECT_EQ(after({0, 2, 1, 4, 8, 6}).winner(), -1);
  EXPECT_EQ(after({0, 3, 1, 4}).winner(), 0);
  EXPECT_FALSE(after({0, 3, 1, 4}).is_over());
}

TEST(TicTacToeTest, AFullBoardIsOver) {
  const TicTacToe drawn = after({0, 1, 2, 4, 3, 5, 7, 6, 8});
  EXPECT_EQ(drawn.winner(), 0);
  EXPECT_TRUE(drawn.is_over());
}

TEST(TicTacToeTest, APlayerSeesItsOwnCellsAsOnes) {
  EXPECT_EQ(after({4}).player(), -1);
  EXPECT_THAT(after({4}).seen_by_last_player(), ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0));
  EXPECT_THAT(after({4, 0}).seen_by_last_player(), ElementsAre(1, 0, 0, 0, -1, 0, 0, 0, 0));
  EXPECT_THAT(after({4, 0}).moves(), ElementsAre(1, 2, 3, 5, 6, 7, 8));
}

}  // namespace
}  // namespace longhaul::examples

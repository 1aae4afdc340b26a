#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhaul::examples {

// A position of tic-tac-toe. The players are 1 and -1; 1 begins.
class TicTacToe {
 public:
  static constexpr int kCells = 9;

  int player() const { return player_; }  // whose turn it is
  std::vector<int> moves() const;         // the empty cells
  void play(int cell);

  int winner() const;  // 0: nobody yet
  bool is_over() const { return winner() != 0 || moves().empty(); }

  // The cells as the player sees them that has moved last: 1 is its own.
  std::array<float, kCells> seen_by_last_player() const;

 private:
  std::array<int8_t, kCells> cells_{};
  int player_ = 1;
};

}  // namespace longhaul::examples

#include "examples/tic_tac_toe.h"

namespace longhaul::examples {
namespace {

constexpr std::array<std::array<size_t, 3>, 8> kLines{
    {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}};

}  // namespace

std::vector<int> TicTacToe::moves() const {
  std::vector<int> empty;
  for (int cell = 0; cell < kCells; ++cell) {
    if (cells_[static_cast<size_t>(cell)] == 0) empty.push_back(cell);
  }
  return empty;
}

void TicTacToe::play(int cell) {
  cells_[static_cast<size_t>(cell)] = static_cast<int8_t>(player_);
  player_ = -player_;
}

int TicTacToe::winner() const {
  for (const auto& line : kLines) {
    const int sum = cells_[line[0]] + cells_[line[1]] + cells_[line[2]];
    if (sum == 3) return 1;
    if (sum == -3) return -1;
  }
  return 0;
}

std::array<float, TicTacToe::kCells> TicTacToe::seen_by_last_player() const {
  std::array<float, kCells> seen{};
  for (size_t i = 0; i < kCells; ++i) seen[i] = static_cast<float>(-player_ * cells_[i]);
  return seen;
}

}  // namespace longhaul::examples

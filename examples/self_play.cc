// Learns tic-tac-toe by playing against itself. Actors play games, each in a thread of its own, with the newest
// weights; the trainer learns from the games of the last while; a gate lets a new net play only if it beats the
// champion of before. Kill it at any moment and start it again: net, champion, ratings, games and generators go on from
// the same moment.
//
//   self_play --logdir=runs/self_play --steps=3000 --actors=2
//
// What actors play depends on their speed. With --actors=0 the trainer plays itself, and a run that was killed ends
// with the same bytes as one that was not.

#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "examples/say.h"
#include "examples/tic_tac_toe.h"
#include "examples/training_options.h"
#include "longhaul/trainer.h"

using namespace longhaul::examples;

namespace {

constexpr int64_t kBatch = 64, kReplay = 20'000, kGateEvery = 200;
constexpr int kGamesPerStep = 2, kGateGames = 60;
constexpr double kCuriosity = 0.15;    // how often a move is a random one
constexpr double kNeededScore = 0.55;  // of a new champion
using Positions = std::vector<std::array<float, TicTacToe::kCells>>;

// How good a position is for the player that has moved last: from -1, lost, to 1, won.
torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(TicTacToe::kCells, 64), torch::nn::ReLU(), torch::nn::Linear(64, 1),
                               torch::nn::Tanh());
}

struct Game {
  Positions positions;          // after each move
  std::vector<float> outcomes;  // for the player that moved: 1 won, 0 drawn, -1 lost
  float result = 0;             // for the player that began
};

// The move after which the net likes the position best; with a null net, and now and then, any.
int choose(const TicTacToe& game, torch::nn::Sequential* net, std::mt19937& dice) {
  const std::vector<int> moves = game.moves();
  if (net == nullptr || std::uniform_real_distribution<>()(dice) < kCuriosity) {
    return moves[std::uniform_int_distribution<size_t>(0, moves.size() - 1)(dice)];
  }
  torch::Tensor after = torch::empty({static_cast<int64_t>(moves.size()), TicTacToe::kCells});
  for (size_t i = 0; i < moves.size(); ++i) {
    TicTacToe next = game;
    next.play(moves[i]);
    std::ranges::copy(next.seen_by_last_player(), after.data_ptr<float>() + i * TicTacToe::kCells);
  }
  return moves[static_cast<size_t>((*net)->forward(after).argmax().item<int64_t>())];
}

Game play(torch::nn::Sequential* first, torch::nn::Sequential* second, std::mt19937& dice) {
  const torch::NoGradGuard no_grad;
  TicTacToe board;
  Game game;
  while (!board.is_over()) {
    board.play(choose(board, board.player() > 0 ? first : second, dice));
    game.positions.push_back(board.seen_by_last_player());
  }
  game.result = static_cast<float>(board.winner());
  for (size_t i = 0; i < game.positions.size(); ++i) game.outcomes.push_back(i % 2 == 0 ? game.result : -game.result);
  return game;
}

// The score of `net` against the other, from 0 to 1; each begins in half of the games.
double score_against(torch::nn::Sequential& net, torch::nn::Sequential* other, int games, std::mt19937& dice) {
  double sum = 0;
  for (int i = 0; i < games; ++i) {
    const bool begins = i % 2 == 0;
    const double result = begins ? play(&net, other, dice).result : -play(other, &net, dice).result;
    sum += (1 + result) / 2;
  }
  return sum / games;
}

void copy_weights(const torch::nn::Module& from, const torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto values = from.parameters();
  auto copies = to.parameters();
  for (size_t i = 0; i < values.size(); ++i) copies[i].copy_(values[i]);
}

// The positions of the last games: a ring of tensors, which checkpoints have as it is after a step.
struct Replay {
  torch::Tensor positions = torch::zeros({kReplay, TicTacToe::kCells}), outcomes = torch::zeros({kReplay, 1});
  int64_t count = 0;  // of all that were ever added

  void keep_in(longhaul::KeptValues& kept, const std::string& name) { kept.keep(name, positions, outcomes, count); }

  void add(const Game& game) {
    for (size_t i = 0; i < game.positions.size(); ++i, ++count) {
      std::ranges::copy(game.positions[i], positions.data_ptr<float>() + count % kReplay * TicTacToe::kCells);
      outcomes.data_ptr<float>()[count % kReplay] = game.outcomes[i];
    }
  }
  torch::Tensor sample(std::mt19937& dice) const {
    std::vector<int64_t> chosen(kBatch);
    std::uniform_int_distribution<int64_t> any(0, std::min(count, kReplay) - 1);
    for (int64_t& index : chosen) index = any(dice);
    return torch::tensor(chosen);
  }
};

// Games on their way from the actors to the trainer. An actor waits while there are many, the trainer while there are
// none; the end of either ends the other's wait.
class Games {
 public:
  bool put(Game game) {  // false: no more are wanted
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || games_.size() < kMost; });
    if (is_closed_) return false;
    games_.push_back(std::move(game));
    changed_.notify_all();
    return true;
  }
  std::deque<Game> take_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || !games_.empty(); });
    if (error_) std::rethrow_exception(error_);
    changed_.notify_all();
    return std::exchange(games_, {});
  }
  void close() {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  void fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    error_ = std::move(error);
    changed_.notify_all();
  }

 private:
  static constexpr size_t kMost = 64;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Game> games_;
  bool is_closed_ = false;
  std::exception_ptr error_;
};

// Plays with the newest champion until the trainer ends.
void act(const longhaul::NewestWeights& newest, Games& games) try {
  torch::nn::Sequential champion = make_net();
  std::mt19937 dice(std::random_device{}());
  std::shared_ptr<const longhaul::Weights> weights = newest.wait_for_newer(nullptr, longhaul::Seconds{600});
  while (weights && !newest.is_closed()) {
    longhaul::load_state_dict(*champion, weights->part("champion."));
    while (weights == newest.get()) {
      if (!games.put(play(&champion, &champion, dice))) return;
    }
    weights = newest.get();
  }
} catch (...) {
  games.fail(std::current_exception());
}

// What the program has besides the two nets and their optimizer. All of it is in checkpoints.
struct SelfPlay {
  torch::nn::Sequential net = make_net(), champion = make_net();
  Replay replay;
  std::vector<double> ratings{1000};  // of the champions, as Elo counts
  int64_t games = 0;
  std::mt19937 dice{1};

  SelfPlay() {
    for (torch::Tensor& weight : champion->parameters()) weight.requires_grad_(false);  // no step trains it
  }

  void learn_from(const Game& game) {
    replay.add(game);
    ++games;
  }

  torch::Tensor train(torch::optim::Optimizer& optimizer) {
    const torch::Tensor chosen = replay.sample(dice);
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::mse_loss(net->forward(replay.positions.index_select(0, chosen)),
                                                               replay.outcomes.index_select(0, chosen));
    loss.backward();
    optimizer.step();
    return loss;
  }

  // Part of a step, so that a checkpoint has the new champion and its rating, or neither.
  void pass_gate(int64_t step) {
    const double score = score_against(net, &champion, kGateGames, dice);
    const bool is_better = score >= kNeededScore;
    if (is_better) {
      copy_weights(*net, *champion);
      ratings.push_back(ratings.back() + 400 * std::log10(score / std::max(1 - score, 0.5 / kGateGames)));
    }
    say("gate at step {}: score {:.3f}: {}, rating {:.0f}\n", step, score, is_better ? "a new champion" : "refused",
        ratings.back());
  }
};

int run(const SelfPlayOptions& options) {
  torch::manual_seed(1);
  SelfPlay self;
  torch::optim::Adam optimizer(self.net->parameters(), torch::optim::AdamOptions(2e-3));

  longhaul::NewestWeights newest;
  Games games;
  longhaul::Trainer trainer(options.logdir, {{"net", self.net}, {"champion", self.champion}}, {&optimizer},
                            {.save_model_secs = longhaul::Seconds{options.save_model_secs}});
  trainer.keep("replay", self.replay);
  trainer.keep("ratings", self.ratings);
  trainer.keep("games", self.games);
  trainer.keep("dice", self.dice);
  trainer.publish_weights(newest, kGateEvery / 4);
  std::vector<std::jthread> actors;
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { games.close(), newest.close(); });
  for (int i = 0; i < options.actors; ++i) actors.emplace_back([&] { act(newest, games); });

  return trainer.run([&] {
    say("starts at step {} with {} games, {} champions\n", trainer.step(), self.games, self.ratings.size());
    for (const int64_t step : trainer.steps(options.steps)) {
      if (options.actors > 0) {
        for (const Game& game : games.take_all()) self.learn_from(game);
      }
      for (int i = 0; i < kGamesPerStep && options.actors == 0; ++i) {
        self.learn_from(play(&self.champion, &self.champion, self.dice));
      }
      trainer.log("loss", self.train(optimizer));
      if ((step + 1) % kGateEvery == 0) self.pass_gate(step + 1);
      trainer.log("rating", self.ratings.back());
    }
    std::mt19937 dice(7);
    say("done games={} champions={} rating={:.0f} against_random={:.3f}\n", self.games, self.ratings.size(),
        self.ratings.back(), score_against(self.champion, nullptr, 200, dice));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_self_play_options(argc, argv);
  if (parsed.exit_status >= 0) return parsed.exit_status;
  try {
    longhaul::set_intra_op_threads(1);  // the matrices are small
    return run(parsed.options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fputs(fmt::format("self_play: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}

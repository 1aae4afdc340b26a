// A small training that TensorFlow can go on with, and the other way round, for crossing_test.cc:
//
//   crossing_program supervisor|monitored OPTIMIZER LOGDIR LAST [EVERY]
//
// It says from which step it goes on, and each step's loss; a step's batch follows from its number. It trains up to the
// step LAST, saves and ends. With EVERY it saves after so many steps instead, and at the end says so and waits for its
// end. original.py is the same for TensorFlow.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/longhaul.h"

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

constexpr int64_t kRows = 8, kInputs = 4, kHidden = 5;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

// Small fractions, which floats have exactly.
lh::Tensor pattern(const lh::Shape& shape, int64_t factor, int64_t offset, int64_t modulus, int64_t divisor) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t number = (static_cast<int64_t>(i) * factor + offset) % modulus - modulus / 2;
    values[i] = static_cast<float>(number) / static_cast<float>(divisor);
  }
  return lh::Tensor::of(shape, values);
}

lh::Operation minimize(const std::string& optimizer, const lh::Output& loss, const lh::Variable& step) {
  if (optimizer == "gradient_descent") return lh::GradientDescentOptimizer(0.1).minimize(loss, step);
  if (optimizer == "momentum") return lh::MomentumOptimizer(0.05, 0.9).minimize(loss, step);
  if (optimizer == "nesterov") return lh::MomentumOptimizer(0.05, 0.9, true).minimize(loss, step);
  if (optimizer == "adam") return lh::AdamOptimizer(0.02).minimize(loss, step);
  if (optimizer == "adagrad") return lh::AdagradOptimizer(0.1).minimize(loss, step);
  if (optimizer == "rmsprop") return lh::RMSPropOptimizer(0.01, 0.9, 0.5, 1e-3).minimize(loss, step);
  if (optimizer == "centered_rmsprop") return lh::RMSPropOptimizer(0.01, 0.9, 0.5, 1e-3, true).minimize(loss, step);
  if (optimizer == "adadelta") return lh::AdadeltaOptimizer(1.0, 0.95, 1e-4).minimize(loss, step);
  if (optimizer == "ftrl") return lh::FtrlOptimizer(0.1).minimize(loss, step);
  throw std::invalid_argument("there is no optimizer " + optimizer);
}

class Training {
 public:
  Training(const std::string& optimizer, std::string logdir, int64_t last, int64_t every)
      : logdir_(std::move(logdir)), last_(last), every_(every), train_(minimize(optimizer, loss_, step_)) {}

  void run_supervised() {
    lh::Supervisor sv({.graph = &graph_,
                       .logdir = logdir_,
                       .save_summaries_secs = lh::Seconds{0},
                       .save_model_secs = lh::Seconds{0}});
    sv.managed_session([&](lh::Session& session) {
      begin(session);
      while (at_ < last_) {
        make_step(session);
        if (every_ > 0 && (at_ - begins_) % every_ == 0) sv.saver()->save(session, sv.save_path(), sv.global_step());
      }
      if (every_ > 0) hold();
    });
  }

  void run_monitored() {
    const lh::MonitoredTrainingSessionOptions options{.graph = &graph_,
                                                      .checkpoint_dir = logdir_,
                                                      .save_checkpoint_steps = every_ > 0 ? every_ : 1000000,
                                                      .save_summaries_steps = 0,
                                                      .log_step_count_steps = 0};
    lh::monitored_training_session(options, [&](lh::MonitoredSession& session) {
      session.run_step_fn([&](lh::StepContext& context) { begin(context.session()); });
      while (at_ < last_) make_step(session);
      if (every_ > 0) hold();
    });
  }

 private:
  void begin(lh::Session& session) {
    begins_ = at_ = session.run(step_).item<int64_t>();
    say(fmt::format("begins at step {}", at_));
  }

  template <typename AnySession>
  void make_step(AnySession& session) {
    const lh::Feeds batch{{x_, pattern({kRows, kInputs}, 7, 3 * at_, 11, 8)}, {y_, pattern({kRows, 1}, 5, at_, 7, 4)}};
    const float loss = session.run(std::vector<lh::Fetch>{loss_, train_}, batch)[0].template item<float>();
    say(fmt::format("step {} loss {:.9g}", ++at_, loss));
  }

  [[noreturn]] static void hold() {
    say("holds");
    while (true) ::pause();
  }

  lh::Variable variable(const char* name, const lh::Shape& shape, int64_t factor) {
    return ops::variable(root_, name, pattern(shape, factor, 0, 13, 16));
  }
  lh::Output squared_error() {
    const lh::Variable w1 = variable("w1", {kInputs, kHidden}, 5), b1 = variable("b1", {kHidden}, 4);
    const lh::Variable w2 = variable("w2", {kHidden, 1}, 3), b2 = variable("b2", {1}, 7);
    const lh::Output hidden = ops::tanh(root_, ops::matmul(root_, x_, w1) + b1);
    return ops::mse_loss(root_, ops::matmul(root_, hidden, w2) + b2, y_);
  }

  const std::string logdir_;
  const int64_t last_, every_;
  lh::Graph graph_;
  lh::Scope root_{graph_};
  const lh::Output x_ = ops::placeholder(root_, lh::kFloat, {kRows, kInputs}, "x");
  const lh::Output y_ = ops::placeholder(root_, lh::kFloat, {kRows, 1}, "y");
  const lh::Output loss_ = squared_error();
  const lh::Variable step_ = ops::create_global_step(root_);
  const lh::Operation train_;
  int64_t begins_ = 0, at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  try {
    Training training(argv[2], argv[3], std::stoll(argv[4]), argc > 5 ? std::stoll(argv[5]) : 0);
    if (std::string(argv[1]) == "monitored") {
      training.run_monitored();
    } else {
      training.run_supervised();
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

#pragma once

#include <torch/data/samplers/random.h>
#include <torch/optim/schedulers/step_lr.h>

#include "longhaul/base/log.h"
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/torch_fixture.h"

namespace longhaul {

// The warnings that the library gives while this lives.
class Warnings {
 public:
  Warnings()
      : before_(set_log_sink([this](LogLevel level, const std::string& text) {
          if (level >= LogLevel::kWarning) seen_.push_back(text);
        })) {}
  ~Warnings() { set_log_sink(before_); }
  Warnings(const Warnings&) = delete;
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  std::vector<std::string> seen_;
  const LogSink before_;
};

// A program of libtorch's, with the parts that a test gives it. To start it again is to make another one.
struct Trial {
  virtual ~Trial() = default;
  Trial() {
    torch::manual_seed(1);
    net = torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Dropout(0.5), torch::nn::Linear(8, 2));
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    step = [this](const TorchStep&) {
      optimizer->zero_grad();
      return update(loss_of(torch::randn({16, 4})));
    };
  }

  torch::Tensor loss_of(const torch::Tensor& examples) {
    return (net->forward(examples) - examples.narrow(1, 0, 2)).square().mean();
  }
  torch::Tensor update(const torch::Tensor& loss) const {
    loss.backward();
    optimizer->step();
    return loss;
  }

  // With its optimizer, or with none.
  Trial& bind(const TorchTrainingOptions& options = {}, bool with_optimizer = true) {
    std::vector<torch::optim::Optimizer*> optimizers;
    if (with_optimizer) optimizers.push_back(optimizer.get());
    training =
        torch_training(Scope(graph), *net, optimizers, [this](const TorchStep& at) { return step(at); }, options);
    init = ops::global_variables_initializer(Scope(graph));
    saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
    return *this;
  }

  // From the checkpoint `prefix`, or afresh. Returns the number of steps made.
  int64_t start(const std::string& prefix = "") {
    if (prefix.empty()) {
      session.run(init);
    } else {
      saver->restore(session, prefix);
    }
    return session.run(training.global_step).item<int64_t>();
  }
  void train(int steps = 1) {
    for (int i = 0; i < steps; ++i) session.run(training.train_op);
  }
  std::string save(const std::string& path) { return saver->save(session, path, training.global_step); }

  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::function<torch::Tensor(const TorchStep&)> step;
  Graph graph;
  TorchTraining training;
  Operation init;
  std::unique_ptr<Saver> saver;
  DirectSession session{graph, SessionOptions{}};
};

// Computes gradients in each step, and leaves the update to others.
inline std::unique_ptr<Trial> without_update() {
  auto trial = std::make_unique<Trial>();
  trial->bind();
  trial->step = [trial = trial.get()](const TorchStep&) {
    trial->optimizer->zero_grad();
    const torch::Tensor loss = trial->loss_of(torch::ones({2, 4}));
    loss.backward();
    return loss;
  };
  return trial;
}

// Updates in every fourth step, by the gradients of four.
inline std::unique_ptr<Trial> gathering(const TorchTrainingOptions& options) {
  auto trial = std::make_unique<Trial>();
  trial->bind(options);
  trial->step = [trial = trial.get()](const TorchStep& step) {
    const torch::Tensor loss = trial->loss_of(torch::randn({16, 4}));
    loss.backward();
    if (step.number % 4 == 3) {
      trial->optimizer->step();
      trial->optimizer->zero_grad();
    }
    return loss;
  };
  return trial;
}

// Makes the steps from `first` to `last`, as the program's own loop does.
using Loop = std::function<void(Trial& trial, int64_t first, int64_t last)>;

inline void plain_loop(Trial& trial, int64_t first, int64_t last) {
  trial.train(static_cast<int>(last - first));
}

class TorchResumeTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSteps = 12;

  using Make = std::function<std::unique_ptr<Trial>()>;
  static std::unique_ptr<Trial> plain() {
    auto trial = std::make_unique<Trial>();
    trial->bind();
    return trial;
  }

  // The parameters at the end of a training that is stopped behind step `cut` and started again; 0: of one that is not.
  std::vector<at::Tensor> end_of(const Make& make, const Loop& loop, int64_t cut = 0) {
    std::string saved;
    if (cut > 0) {
      const auto trial = make();
      trial->start();
      loop(*trial, 0, cut);
      saved = trial->save(path_);
    }
    const auto trial = make();
    loop(*trial, trial->start(saved), kSteps);
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& parameter : trial->net->parameters()) parameters.push_back(parameter.detach().clone());
    return parameters;
  }

  static bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return at::equal(x, y); });
  }

  void expect_exact(const Make& make, const Loop& loop) {
    const std::vector<at::Tensor> undisturbed = end_of(make, loop);
    for (int64_t cut = 1; cut < kSteps; ++cut) EXPECT_TRUE(equal(end_of(make, loop, cut), undisturbed)) << cut;
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
};

class TorchFindingsTest : public TorchResumeTest {
 protected:
  // What is said in a training from its begin to its end.
  std::vector<std::string> warnings_of(const Make& make, const Loop& loop = plain_loop, int64_t cut = 0) {
    const Warnings warnings;
    end_of(make, loop, cut);
    return warnings.seen();
  }
};

}  // namespace longhaul

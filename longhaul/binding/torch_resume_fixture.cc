#include "longhaul/binding/torch_resume_fixture.h"

#include "longhaul/runtime/blas_kernels.h"

namespace longhaul {

// What a process warns of once, at its first session, comes before.
Warnings::Warnings()
    : before_([this] {
        warn_of_old_blas_kernels();
        return set_log_sink([this](LogLevel level, const std::string& text) {
          if (level >= LogLevel::kWarning) seen_.push_back(text);
        });
      }()) {}

Warnings::~Warnings() {
  set_log_sink(before_);
}

Trial::Trial() {
  torch::manual_seed(1);
  net = torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Dropout(0.5), torch::nn::Linear(8, 2));
  move_to_test_device(*net);
  optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  step = [this](const TorchStep&) {
    optimizer->zero_grad();
    return update(loss_of(torch::randn({16, 4})));
  };
}

torch::Tensor Trial::loss_of(const torch::Tensor& from_host) {
  const torch::Tensor examples = from_host.to(test_device());
  return (net->forward(examples) - examples.narrow(1, 0, 2)).square().mean();
}

torch::Tensor Trial::update(const torch::Tensor& loss) const {
  loss.backward();
  optimizer->step();
  return loss;
}

Trial& Trial::bind(const TorchTrainingOptions& options, bool with_optimizer) {
  std::vector<torch::optim::Optimizer*> optimizers;
  if (with_optimizer) optimizers.push_back(optimizer.get());
  training = torch_training(Scope(graph), *net, optimizers, [this](const TorchStep& at) { return step(at); }, options);
  init = ops::global_variables_initializer(Scope(graph));
  saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
  return *this;
}

int64_t Trial::start(const std::string& prefix) {
  if (prefix.empty()) {
    session.run(init);
  } else {
    saver->restore(session, prefix);
  }
  return session.run(training.global_step).item<int64_t>();
}

void Trial::train(int steps) {
  for (int i = 0; i < steps; ++i) session.run(training.train_op);
}

std::string Trial::save(const std::string& path) {
  return saver->save(session, path, training.global_step);
}

std::unique_ptr<Trial> without_update() {
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

std::unique_ptr<Trial> gathering(const TorchTrainingOptions& options) {
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

void plain_loop(Trial& trial, int64_t first, int64_t last) {
  trial.train(static_cast<int>(last - first));
}

std::unique_ptr<Trial> TorchResumeTest::plain() {
  auto trial = std::make_unique<Trial>();
  trial->bind();
  return trial;
}

std::vector<at::Tensor> TorchResumeTest::end_of(const Make& make, const Loop& loop, int64_t cut) {
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

bool TorchResumeTest::equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return at::equal(x, y); });
}

void TorchResumeTest::expect_exact(const Make& make, const Loop& loop) {
  const std::vector<at::Tensor> undisturbed = end_of(make, loop);
  for (int64_t cut = 1; cut < kSteps; ++cut) EXPECT_TRUE(equal(end_of(make, loop, cut), undisturbed)) << cut;
}

std::vector<std::string> TorchFindingsTest::warnings_of(const Make& make, const Loop& loop, int64_t cut) {
  const Warnings warnings;
  end_of(make, loop, cut);
  return warnings.seen();
}

}  // namespace longhaul

// Checkpoints that are saved by another thread while a Trainer's steps go on.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "longhaul/checkpoint.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Large enough that a snapshot is copied while the next step computes; 5 MB with the momentum.
struct LargeProgram {
  explicit LargeProgram(const std::string& directory)
      : net(torch::nn::Linear(256, 1024), torch::nn::Linear(1024, 256), torch::nn::Linear(256, 4)),
        optimizer(net->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)),
        trainer(directory, net, optimizer, {.save_model_secs = Seconds{0}, .progress = false}) {
    move_to_test_device(*net);
    trainer.keep("count", count);
  }

  void step() {
    optimizer.zero_grad();
    const torch::Tensor loss = net->forward(torch::randn({4, 256}, test_device())).square().mean();
    loss.backward();
    optimizer.step();
    ++count;
    trainer.log("loss", loss);
  }
  void save() {
    trainer.supervisor().saver()->save(trainer.session(), trainer.supervisor().save_path(),
                                       trainer.training().global_step);
  }
  // Sums: a tensor that has some elements of another step has another one.
  std::vector<at::Tensor> state() const {
    std::vector<at::Tensor> all{torch::full({}, count, torch::kLong)};
    for (const at::Tensor& parameter : net->parameters()) all.push_back(parameter.detach().sum(torch::kDouble).cpu());
    std::vector<double> momenta;  // the states are in no order
    for (const auto& state : optimizer.state()) {
      const auto& of_sgd = static_cast<const torch::optim::SGDParamState&>(*state.second);
      momenta.push_back(of_sgd.momentum_buffer().sum(torch::kDouble).item<double>());
    }
    std::sort(momenta.begin(), momenta.end());
    all.push_back(torch::tensor(momenta, torch::kDouble));
    return all;
  }

  torch::nn::Sequential net;
  torch::optim::SGD optimizer;
  int64_t count = 0;
  Trainer trainer;
};

class TrainerOverlapTest : public TrainerTest {};

TEST_F(TrainerOverlapTest, ACheckpointHasTheStateBetweenTwoSteps) {
  torch::manual_seed(1);
  const std::string place = fresh("run");
  const Logged logged;
  for (int crash = 0; crash < 4; ++crash) {
    std::map<int64_t, std::vector<at::Tensor>> states;  // after each step
    int64_t begun_at = 0;
    {
      LargeProgram program(place);
      program.trainer.after_every(1, [&] { states[program.trainer.step()] = program.state(); });
      std::atomic<int> saves = 0;
      std::thread saver;
      EXPECT_EQ(program.trainer.run([&] {
        begun_at = program.trainer.step();
        saver = std::thread([&] {
          while (saves < 5) {
            program.save();
            ++saves;
          }
        });
        const std::shared_ptr<void> at_end(nullptr, [&](void*) { saver.join(); });
        for ([[maybe_unused]] const int64_t step : program.trainer.steps(1'000'000)) {
          program.step();
          if (saves == 5) throw std::runtime_error("crash");
        }
      }),
                1);
    }
    LargeProgram again(place);
    int64_t restored = 0;
    EXPECT_EQ(again.trainer.run([&] {
      restored = again.trainer.step();
      again.trainer.request_stop();
      ASSERT_TRUE(states.contains(restored)) << restored;
      expect_same(again.state(), states.at(restored), "step " + std::to_string(restored));
    }),
              0);
    EXPECT_GT(restored, begun_at);
  }
  EXPECT_THAT(logged.warnings(), Not(Contains(HasSubstr("waits for the copies")))) << "they were made beside the steps";
}

}  // namespace
}  // namespace longhaul

#include "longhaul/trainer/trainer_fixture.h"

#include <fmt/format.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <stdexcept>

#include "longhaul/testing/fake_device/test_device_fixture.h"

namespace longhaul {

using ::testing::IsEmpty;

Logged::Logged() : before_(set_log_sink([this](LogLevel level, const std::string& text) { add(level, text); })) {}

Logged::~Logged() {
  set_log_sink(before_);
}

std::vector<std::string> Logged::all() const {
  MutexLock lock(mutex_);
  return all_;
}

std::vector<std::string> Logged::warnings() const {
  MutexLock lock(mutex_);
  return warnings_;
}

void Logged::add(LogLevel level, const std::string& text) {
  MutexLock lock(mutex_);
  all_.push_back(text);
  if (level == LogLevel::kWarning && text.find("OPENBLAS") == std::string::npos &&
      text.find("steps are lost, and are made again") == std::string::npos) {
    warnings_.push_back(text);
  }
}

torch::data::Example<> Points::get(size_t index) {
  return {torch::full({4}, 0.1 * static_cast<double>(index)), torch::zeros({1})};
}

Program::Program(const std::string& directory, TrainerOptions options) {
  torch::manual_seed(1);
  net = torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Dropout(0.5), torch::nn::Linear(8, 2));
  move_to_test_device(*net);
  optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(0.01));
  scheduler = std::make_unique<torch::optim::StepLR>(*optimizer, 1, 0.9);
  options.save_model_secs = Seconds{0};
  options.progress = false;
  options.training.schedulers = {scheduler.get()};
  options.training.state = {{"seen", &seen}};
  options.training.generators = {{"own", own}};
  trainer = std::make_unique<Trainer>(directory, net, *optimizer, options);
  trainer->keep("mine", count, dice);
}

void Program::step(const torch::Tensor& given) {
  const torch::Tensor examples = given.to(test_device());
  optimizer->zero_grad();
  const torch::Tensor loss = (net->forward(examples) - examples.narrow(1, 0, 2)).square().mean();
  loss.backward();
  optimizer->step();
  seen += given.sum();
  count += static_cast<int64_t>(dice() % 100);
  trainer->log("loss", loss);
}

void Program::step() {
  step(torch::randn({16, 4}));
}

void Program::stop_at(int64_t cut) {
  trainer->after_every(1, [this, cut] {
    if (trainer->step() == cut) trainer->request_stop();
  });
}

void Program::crash_after(int64_t cut) {
  trainer->after_every(1, [this, cut] {
    if (trainer->step() == cut) save();
    if (trainer->step() == cut + 2) throw std::runtime_error("crash");
  });
}

void Program::save() {
  trainer->supervisor().saver()->save(trainer->session(), trainer->supervisor().save_path(),
                                      trainer->training().global_step);
}

std::vector<at::Tensor> Program::state() {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : net->parameters()) all.push_back(parameter.detach().cpu().clone());
  all.push_back(seen.clone());
  all.push_back(torch::full({1}, optimizer->param_groups()[0].options().get_lr(), torch::kDouble));
  all.push_back(torch::tensor({count, static_cast<int64_t>(std::mt19937(dice)())}));
  all.push_back(at::detail::getDefaultCPUGenerator().get_state());
  return all;
}

std::string error_of(const Program& program) {
  try {
    std::rethrow_exception(program.trainer->error());
  } catch (const std::exception& error) {
    return error.what();
  }
}

void TrainerTest::expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                              const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << what << ": " << i;
}

void TrainerTest::expect_exact(const Body& body, int64_t steps) {
  std::vector<at::Tensor> expected;
  {
    Program whole(fresh("whole"));
    ASSERT_EQ(whole.trainer->run([&] { body(whole); }), 0);
    ASSERT_EQ(whole.trainer->step(), steps);
    expected = whole.state();
  }
  for (int64_t cut = 1; cut <= steps; ++cut) {
    for (const bool crashes : {false, true}) {
      if (crashes && cut + 2 > steps) continue;
      const std::string what = fmt::format("{} after step {}", crashes ? "a crash" : "a stop", cut);
      const std::string place = fresh(fmt::format("{}_{}", crashes, cut));
      {
        const Logged quiet;
        Program first(place);
        crashes ? first.crash_after(cut) : first.stop_at(cut);
        ASSERT_EQ(first.trainer->run([&] { body(first); }), crashes ? 1 : 0) << what;
      }
      const Logged logged;
      Program second(place);
      int64_t begun_at = -1;
      ASSERT_EQ(second.trainer->run([&] {
        begun_at = second.trainer->step();
        body(second);
      }),
                0)
          << what;
      EXPECT_EQ(begun_at, cut) << what;
      expect_same(second.state(), expected, what);
      EXPECT_THAT(logged.warnings(), IsEmpty()) << what;
    }
  }
}

}  // namespace longhaul

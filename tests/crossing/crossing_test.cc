// Trainings that TensorFlow and Longhaul make by turns, in one directory: each goes on where the other was, also where
// the other was killed, and the losses are those of TensorFlow alone.
//
// LONGHAUL_TENSORFLOW is a Python with TensorFlow 1.15 or 2.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using testing::Process;

enum class Side { kOriginal, kOurs };

struct Kind {
  const char* optimizer;
  const char* manager;
  Side first;
};

// A part of a training, by one process. One that does not save its last step is killed after it.
struct Stretch {
  int64_t begins, ends, saved;
};
constexpr Stretch kStretches[] = {{0, 5, 5}, {5, 10, 10}, {10, 15, 13}, {13, 18, 16}, {16, 21, 21}, {21, 26, 26}};
constexpr int64_t kLastStep = 26;
constexpr double kTolerance = 2e-6;

using Losses = std::map<int64_t, double>;

Losses losses_of(const std::string& output) {
  static const std::regex line(R"(step (\d+) loss (\S+))");
  Losses losses;
  for (std::sregex_iterator match(output.begin(), output.end(), line), end; match != end; ++match) {
    losses[std::stoll((*match)[1])] = std::stod((*match)[2]);
  }
  return losses;
}

class Crossing : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    python_ = std::getenv("LONGHAUL_TENSORFLOW");
    LONGHAUL_NEEDS("tensorflow", python_ != nullptr, "LONGHAUL_TENSORFLOW names no Python that has TensorFlow");
  }

  std::unique_ptr<Process> start(Side side, const std::string& logdir, int64_t last, int64_t save_every = 0) {
    std::vector<std::string> command{CROSSING_PROGRAM};
    if (side == Side::kOriginal) command = {python_, ORIGINAL_PROGRAM};
    for (const std::string& argument : {std::string(GetParam().manager), std::string(GetParam().optimizer), logdir,
                                        std::to_string(last), std::to_string(save_every)}) {
      command.push_back(argument);
    }
    return std::make_unique<Process>(command, directory_.file("output"));
  }

  Losses run_undisturbed() {
    auto training = start(Side::kOriginal, directory_.file("undisturbed"), kLastStep);
    EXPECT_EQ(training->wait(), 0) << training->errors();
    return losses_of(training->output());
  }

  // What is saved while a training goes on may not be there yet. Ends when the training does.
  bool is_saved(int64_t step, Process& training) const {
    const std::string line = "model.ckpt-" + std::to_string(step) + "\"";
    for (int tries = 0; tries < 600; ++tries) {
      std::ostringstream state;
      state << std::ifstream(logdir_ + "/checkpoint").rdbuf();
      if (state.str().find(line) != std::string::npos) return true;
      if (!training.runs_for(std::chrono::milliseconds(100))) return false;
    }
    return false;
  }

  std::string output_of(Side side, const Stretch& stretch) {
    if (stretch.saved == stretch.ends) {
      auto training = start(side, logdir_, stretch.ends);
      EXPECT_EQ(training->wait(), 0) << training->errors();
      return training->output();
    }
    auto training = start(side, logdir_, stretch.ends, stretch.saved - stretch.begins);
    EXPECT_TRUE(training->prints("holds")) << training->errors();
    EXPECT_TRUE(is_saved(stretch.saved, *training)) << training->errors();
    training->send(SIGKILL);
    EXPECT_EQ(training->wait(), 128 + SIGKILL);
    return training->output();
  }

  const char* python_ = nullptr;
  const testing::TemporaryDirectory directory_;
  const std::string logdir_ = directory_.file("both");
};

TEST_P(Crossing, EachGoesOnWhereTheOtherWas) {
  const Losses expected = run_undisturbed();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kLastStep));
  Side side = GetParam().first;
  for (const Stretch& stretch : kStretches) {
    SCOPED_TRACE((side == Side::kOurs ? "ours" : "TensorFlow") + (" from step " + std::to_string(stretch.begins)));
    const std::string output = output_of(side, stretch);
    ASSERT_THAT(output, HasSubstr("begins at step " + std::to_string(stretch.begins) + "\n"));
    const Losses found = losses_of(output);
    ASSERT_EQ(found.size(), static_cast<size_t>(stretch.ends - stretch.begins));
    for (const auto& [step, loss] : found) EXPECT_NEAR(loss, expected.at(step), kTolerance) << "step " << step;
    side = side == Side::kOurs ? Side::kOriginal : Side::kOurs;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, Crossing,
    ::testing::Values(Kind{"gradient_descent", "supervisor", Side::kOriginal},
                      Kind{"momentum", "supervisor", Side::kOurs}, Kind{"nesterov", "supervisor", Side::kOriginal},
                      Kind{"adam", "supervisor", Side::kOriginal}, Kind{"adagrad", "supervisor", Side::kOurs},
                      Kind{"rmsprop", "supervisor", Side::kOriginal},
                      Kind{"centered_rmsprop", "supervisor", Side::kOurs}, Kind{"adadelta", "supervisor", Side::kOurs},
                      Kind{"ftrl", "supervisor", Side::kOriginal}, Kind{"momentum", "monitored", Side::kOriginal},
                      Kind{"adam", "monitored", Side::kOurs}),
    [](const auto& info) { return std::string(info.param.optimizer) + "_" + info.param.manager; });

}  // namespace
}  // namespace longhaul

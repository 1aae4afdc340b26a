// Trainings that TensorFlow and Longhaul make by turns, in one directory: each goes on where the other was, also where
// the other was killed, and the losses are those of TensorFlow alone. A checkpoint that lacks a name that the other
// wants is refused, so names are held to be the same as well.
//
// And a client of TensorFlow uses a server of ours.
//
// LONGHAUL_TENSORFLOW is a Python with TensorFlow 1.15 or 2.

#include <fmt/format.h>
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
  const char* model;
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

double tolerance(const std::string& model) {
  return model == "doubles" ? 1e-12 : 2e-6;
}

using Losses = std::map<int64_t, double>;

Losses losses_of(const std::string& output) {
  static const std::regex line(R"(step (\d+) loss (\S+))");
  Losses losses;
  for (std::sregex_iterator match(output.begin(), output.end(), line), end; match != end; ++match) {
    losses[std::stoll((*match)[1])] = std::stod((*match)[2]);
  }
  return losses;
}

class CrossingFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = std::getenv("LONGHAUL_TENSORFLOW");
    LONGHAUL_NEEDS("tensorflow", python_ != nullptr, "LONGHAUL_TENSORFLOW names no Python that has TensorFlow");
  }

  std::unique_ptr<Process> start(Side side, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{CROSSING_PROGRAM};
    if (side == Side::kOriginal) command = {python_, ORIGINAL_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command, directory_.file("output"));
  }

  const char* python_ = nullptr;
  const testing::TemporaryDirectory directory_;
  const std::string logdir_ = directory_.file("both");
};

class Crossing : public CrossingFixture, public ::testing::WithParamInterface<Kind> {
 protected:
  std::unique_ptr<Process> train(Side side, const std::string& logdir, int64_t last, int64_t save_every = 0) {
    const Kind& kind = GetParam();
    return start(side,
                 {kind.manager, kind.model, kind.optimizer, logdir, std::to_string(last), std::to_string(save_every)});
  }

  Losses run_undisturbed() {
    auto training = train(Side::kOriginal, directory_.file("undisturbed"), kLastStep);
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
      auto training = train(side, logdir_, stretch.ends);
      EXPECT_EQ(training->wait(), 0) << training->errors();
      return training->output();
    }
    auto training = train(side, logdir_, stretch.ends, stretch.saved - stretch.begins);
    EXPECT_TRUE(training->prints("holds")) << training->errors();
    EXPECT_TRUE(is_saved(stretch.saved, *training)) << training->errors();
    training->send(SIGKILL);
    EXPECT_EQ(training->wait(), 128 + SIGKILL);
    return training->output();
  }
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
    for (const auto& [step, loss] : found)
      EXPECT_NEAR(loss, expected.at(step), tolerance(GetParam().model)) << "step " << step;
    side = side == Side::kOurs ? Side::kOriginal : Side::kOurs;
  }
}

std::string name_of(const ::testing::TestParamInfo<Kind>& info) {
  const auto& [model, optimizer, manager, first] = info.param;
  return fmt::format("{}_{}_{}_{}", model, optimizer, manager, first == Side::kOurs ? "ours_first" : "original_first");
}

constexpr Side kOriginal = Side::kOriginal, kOurs = Side::kOurs;

INSTANTIATE_TEST_SUITE_P(
    Trainings, Crossing,
    ::testing::Values(
        Kind{"perceptron", "gradient_descent", "supervisor", kOriginal},
        Kind{"perceptron", "momentum", "supervisor", kOurs}, Kind{"perceptron", "nesterov", "supervisor", kOriginal},
        Kind{"perceptron", "adam", "supervisor", kOriginal}, Kind{"perceptron", "adagrad", "supervisor", kOurs},
        Kind{"perceptron", "rmsprop", "supervisor", kOriginal},
        Kind{"perceptron", "centered_rmsprop", "supervisor", kOurs},
        Kind{"perceptron", "adadelta", "supervisor", kOurs}, Kind{"perceptron", "ftrl", "supervisor", kOriginal},
        Kind{"perceptron", "momentum", "monitored", kOriginal}, Kind{"perceptron", "adam", "monitored", kOurs},
        Kind{"doubles", "adam", "supervisor", kOurs}, Kind{"doubles", "adam", "monitored", kOriginal},
        Kind{"scopes", "adam", "supervisor", kOriginal}, Kind{"scopes", "named_adam", "supervisor", kOurs},
        Kind{"scopes", "named_momentum", "monitored", kOurs}, Kind{"layers", "adam", "supervisor", kOriginal},
        Kind{"embedding", "momentum", "supervisor", kOurs}, Kind{"embedding", "nesterov", "supervisor", kOriginal},
        Kind{"embedding", "adagrad", "supervisor", kOriginal}),
    name_of);

// Each stretch but the first has the graph of the other's .meta file.
INSTANTIATE_TEST_SUITE_P(MetaGraphs, Crossing,
                         ::testing::Values(Kind{"state", "none", "supervisor", kOurs},
                                           Kind{"state", "none", "supervisor", kOriginal},
                                           Kind{"state", "none", "monitored", kOurs},
                                           Kind{"state", "none", "monitored", kOriginal}),
                         name_of);

using CrossingMetaGraph = CrossingFixture;

TEST_F(CrossingMetaGraph, OneWithLayersIsRefusedByTheOther) {
  const std::map<Side, const char*> refusals = {{kOurs, "Op type not registered 'aten::"}, {kOriginal, "MatMul"}};
  for (const auto& [side, refusal] : refusals) {
    const std::string logdir = directory_.file(side == kOurs ? "ours" : "original");
    auto training = start(side, {"supervisor", "perceptron", "gradient_descent", logdir, "1"});
    ASSERT_EQ(training->wait(), 0) << training->errors();
    auto import = start(side == kOurs ? kOriginal : kOurs, {"import", logdir + "/model.ckpt-1.meta"});
    EXPECT_EQ(import->wait(), 1);
    EXPECT_THAT(import->errors(), HasSubstr(refusal));
  }
}

using CrossingServer = CrossingFixture;

// Sessions, devices, variables, callables, reset and close, all with TensorFlow's own messages.
TEST_F(CrossingServer, AnswersTheOriginalsClient) {
  Process server({CROSSING_PROGRAM, "serve"}, directory_.file("server"));
  static const std::regex told(R"(target (grpc://\S+)\n)");
  ASSERT_TRUE(server.prints("\n")) << server.errors();
  const std::string said = server.output();
  std::smatch target;
  ASSERT_TRUE(std::regex_search(said, target, told)) << said;
  Process client({python_, ORIGINAL_CLIENT, target[1]}, directory_.file("client"));
  EXPECT_EQ(client.wait(), 0) << client.output() << client.errors() << server.errors();
  EXPECT_THAT(client.output(), HasSubstr("closed: ok"));
}

}  // namespace
}  // namespace longhaul

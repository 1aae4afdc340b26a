// Trainings that are killed again and again end where an undisturbed one ends: with the same bytes in every variable,
// and with the same curves. LONGHAUL_KILLS says how many kills each test makes; absent: as many as take a few seconds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "examples/idx_dataset.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::Process;

int kills_wanted() {
  const char* const text = std::getenv("LONGHAUL_KILLS");
  if (text == nullptr) return 12;
  int kills = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, kills);
  if (error != std::errc() || rest != end || kills <= 0) {
    throw InvalidArgumentError(fmt::format("LONGHAUL_KILLS is \"{}\": it must be a number above 0", text));
  }
  return kills;
}

// All tensors of a checkpoint, by name.
std::map<std::string, Tensor> tensors_of(const std::string& prefix) {
  const BundleReader reader(FileSystem::real(), prefix);
  std::map<std::string, Tensor> tensors;
  for (const std::string& key : reader.keys()) tensors.emplace(key, reader.read(key));
  return tensors;
}

// What a reader shows of a tag, as bytes by step.
using Curve = std::map<int64_t, std::string>;

std::map<std::string, Curve> curves_of(const std::string& directory, independent::Rule rule) {
  std::map<std::string, Curve> curves;
  for (const auto& [tag, series] : independent::CurveReader::read(directory, rule)) {
    for (const auto& point : series.points) curves[tag][point.step] = fmt::format("{} {}", point.number, point.bytes);
  }
  return curves;
}

// Of the expected steps, `may_miss` may be missing.
std::string first_difference(const Curve& found, const Curve& expected, int may_miss) {
  for (const auto& [step, value] : expected) {
    if (!found.contains(step) && --may_miss < 0) return fmt::format("nothing at step {}", step);
    if (found.contains(step) && found.at(step) != value) return fmt::format("another value at step {}", step);
  }
  for (const auto& [step, value] : found) {
    if (!expected.contains(step)) return fmt::format("step {} is not expected", step);
  }
  return "";
}

class ExactResume : public ::testing::Test {
 protected:
  // What a training is run as; the directory comes between the two parts.
  struct Program {
    std::vector<std::string> before_directory, after_directory;
  };

  std::unique_ptr<Process> start(const Program& program, const std::string& directory) {
    std::vector<std::string> command = program.before_directory;
    command.back() += directory;
    command.insert(command.end(), program.after_directory.begin(), program.after_directory.end());
    return std::make_unique<Process>(command, temporary_.file("output"));
  }

  milliseconds run_undisturbed(const Program& program) {
    const auto begin = std::chrono::steady_clock::now();
    auto training = start(program, undisturbed_);
    EXPECT_EQ(training->wait(), 0) << training->errors();
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  }

  // Trainings one after the other, each in a directory of its own and started again after each kill, until there were
  // enough kills; then the last one goes on to its end. A kill comes at any moment of a run, also when it has just
  // begun or is about to end.
  void run_with_kills(const Program& program, milliseconds length) {
    std::mt19937 random(20240617);
    std::uniform_int_distribution<int64_t> moment(0, length.count() * 3 / 4);
    for (int kills = 0; kills < kills_wanted(); ++trainings_) {
      const int kills_before = kills;
      for (bool ended = false; !ended && kills < kills_wanted();) {
        auto victim = start(program, disturbed());
        ended = !victim->runs_for(milliseconds(moment(random)));
        if (!ended) victim->send(SIGKILL), ++kills;
        const int status = victim->wait();
        ASSERT_TRUE(status == 0 || status == 128 + SIGKILL) << status << ": " << victim->errors();
      }
      auto last = start(program, disturbed());
      ASSERT_EQ(last->wait(), 0) << last->errors();
      compare(kills - kills_before);
    }
    fmt::print("{} kills in {} trainings of {} ms each\n", kills_wanted(), trainings_, length.count());
  }

  std::string disturbed() const { return temporary_.file(fmt::format("disturbed{}", trainings_)); }

  static std::string last_checkpoint(const std::string& directory) {
    return newest_intact_checkpoint(FileSystem::real(), directory, "model.ckpt").prefix.value_or("");
  }

  void compare(int kills) const {
    const auto expected = tensors_of(last_checkpoint(undisturbed_)), found = tensors_of(last_checkpoint(disturbed()));
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, value] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_TRUE(identical(found.at(name), value)) << name << " has other bytes in " << disturbed();
    }
    for (const auto rule : {independent::Rule::kStart, independent::Rule::kPerTag}) compare_curves(rule, kills);
  }

  // A digest that is under way when a process is killed may be missing.
  void compare_curves(independent::Rule rule, int kills) const {
    const auto expected = curves_of(undisturbed_, rule), found = curves_of(disturbed(), rule);
    for (const std::string& tag : series_by_steps_) {
      ASSERT_TRUE(expected.contains(tag)) << tag;
      ASSERT_TRUE(found.contains(tag)) << tag;
      const int may_miss = tag == "longhaul/weight_digest" ? kills : 0;
      EXPECT_EQ(first_difference(found.at(tag), expected.at(tag), may_miss), "")
          << tag << " is another curve in " << disturbed();
    }
  }

  testing::TemporaryDirectory temporary_;
  const std::string undisturbed_ = temporary_.file("undisturbed");
  std::vector<std::string> series_by_steps_;
  int trainings_ = 0;
};

TEST_F(ExactResume, OfATrainingWithDropoutAndNoise) {
  series_by_steps_ = {"loss", "hidden_histogram", "longhaul/weight_digest"};
  const Program program{{EXACT_RESUME_PROGRAM, ""}, {"600"}};
  run_with_kills(program, run_undisturbed(program));
}

TEST_F(ExactResume, OfTheFashionMnistExample) {
  LONGHAUL_NEEDS("fashion_mnist", fs::exists(examples::kFashionMnistDirectory),
                 "apt-get install dataset-fashion-mnist");
  series_by_steps_ = {"longhaul/weight_digest"};
  const Program program{
      {FASHION_MNIST_PROGRAM, "--logdir="},
      {"--steps=600", "--threads=1", "--save_model_secs=0.2", "--save_summaries_secs=0.3", "--digest_steps=50"}};
  run_with_kills(program, run_undisturbed(program));
}

}  // namespace
}  // namespace longhaul

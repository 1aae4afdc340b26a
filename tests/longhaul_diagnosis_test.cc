// What went wrong with a training, by `longhaul status` and `longhaul runs` alone: what happened, when, at which step,
// what was lost, and what to do.
#include <signal.h>

#include <chrono>
#include <memory>
#include <thread>

#include "tests/longhaul_program_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Words = std::vector<std::string>;

class LonghaulDiagnosis : public LonghaulProgram {
 protected:
  // A Supervisor's training; see preemption_program.cc for the environment.
  std::unique_ptr<testing::Process> train(Words environment) {
    environment.insert(environment.begin(), "/usr/bin/env");
    environment.insert(environment.end(), {PREEMPTION_PROGRAM, "supervisor", run_});
    return std::make_unique<testing::Process>(environment, path("training"));
  }
  // The texts of both, and the same as JSON; `status` is the first one's exit status.
  void look(int status) {
    status_ = json_of({"status", run_}, status)["directories"][0];
    runs_ = json_of({"runs", run_}, 0);
    EXPECT_EQ(longhaul({"status", run_}), status) << err_;
    status_text_ = out_;
    EXPECT_EQ(longhaul({"runs", run_}), 0) << err_;
    runs_text_ = out_;
    EXPECT_EQ(status == 0, status_["problems"].empty());
  }
  // Until the JSON of status has that; else the test fails.
  template <typename Condition>
  void look_until(const testing::Process& training, int status, Condition&& condition) {
    for (int i = 0; i < 600; ++i) {
      longhaul({"status", "--json", run_});
      if (condition(nlohmann::json::parse(out_)["directories"][0])) return look(status);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // wait: polls: another process writes its journal
    }
    ADD_FAILURE() << out_ << training.errors();
  }
  // It ended within the last minutes, as both say.
  void expect_ended_just_now() const {
    const double age = Clock::real().wall_time() - status_["ended_at"].get<double>();
    EXPECT_TRUE(age > -1 && age < 300) << age;
    EXPECT_EQ(runs_["runs"][0]["until"], status_["ended_at"]);
    EXPECT_THAT(status_text_, ContainsRegex("\n  ended       20[0-9: -]+ UTC, [0-9.]+ (s|min [0-9]+ s) ago\n"));
  }

  const std::string run_ = path("run");
  nlohmann::json status_, runs_;
  std::string status_text_, runs_text_;
};

constexpr char kTime[] = "20[0-9: -]+ UTC, [^)]+ ago";

TEST_F(LonghaulDiagnosis, OfATrainingThatHung) {
  const auto training = train({"SAVES_AT=20", "HANGS_AT=60"});
  ASSERT_EQ(training->wait(), 79) << training->errors();
  look(1);
  expect_ended_just_now();
  EXPECT_EQ(status_["state"], "disturbed");
  EXPECT_EQ(status_["step"], 60);
  EXPECT_EQ(status_["checkpoint"]["step"], 20);
  EXPECT_EQ(status_["problems"].size(), 1u) << status_text_;
  EXPECT_THAT(
      status_text_,
      ContainsRegex(std::string("wrong +run 1 disturbed: the training hung: no step for [0-9.]+ s .*\\(") + kTime +
                    "\\); its log and its events \\(longhaul/hang\\) have the stacks of all threads; "
                    "steps 21 to 60 \\([^)]+ of training\\) are in no checkpoint; "
                    "start it again: it continues from model\\.ckpt-20\n"));
  EXPECT_EQ(runs_["runs"][0]["end"], "disturbed");
  EXPECT_EQ(runs_["runs"][0]["hangs"], 1);
  EXPECT_EQ(runs_["runs"][0]["last_step"], 60);
  EXPECT_GT(runs_["unsaved_seconds"], 0);
  EXPECT_THAT(runs_text_, AllOf(HasSubstr("0 to 60"), HasSubstr("disturbed (1 hang): the training hung: no step for "),
                                ContainsRegex("\nsteps 21 to 60 .* are in no checkpoint; start it again: it continues "
                                              "from model\\.ckpt-20\n")));
}

TEST_F(LonghaulDiagnosis, OfATrainingThatDivergedAndWentBack) {
  const auto training = train({"SAVES_AT=20", "DIVERGES_AT=35"});
  ASSERT_TRUE(training->prints("begins at step 20")) << training->errors();
  look_until(*training, 0, [](const nlohmann::json& now) { return now["step"] > 20 && !now["notes"].empty(); });
  EXPECT_EQ(status_["state"], "training");
  const std::string what = "rollback 1: the loss of step 34 went bad \\(nan\\); back to step 20, model\\.ckpt-20 \\(" +
                           std::string(kTime) + "\\): 15 steps are lost";
  EXPECT_THAT(status_["notes"][0].get<std::string>(),
              ContainsRegex("^the loss went bad: " + what + ", and it continues by itself$"));
  EXPECT_THAT(status_text_, ContainsRegex("\n  note +the loss went bad: " + what));
  EXPECT_THAT(runs_text_,
              AllOf(ContainsRegex("\n" + what + "\n"), HasSubstr("running\n"), HasSubstr("1 interruption")));
  const nlohmann::json& rollback = runs_["rollbacks"][0];
  EXPECT_EQ(rollback["diverged_step"], 34);
  EXPECT_EQ(rollback["restored_step"], 20);
  EXPECT_EQ(rollback["lost_steps"], 15);
  EXPECT_NEAR(rollback["time"].get<double>(), Clock::real().wall_time(), 300);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), 75) << training->errors();
}

TEST_F(LonghaulDiagnosis, OfATrainingThatWasPreempted) {
  const auto training = train({"SAVES_AT=20"});
  ASSERT_TRUE(training->prints("begins at step 0")) << training->errors();
  look_until(*training, 0, [](const nlohmann::json& now) { return now["checkpoint"].is_object(); });
  training->send(SIGTERM);
  ASSERT_EQ(training->wait(), 75) << training->errors();
  look(0);
  expect_ended_just_now();
  const int64_t step = status_["step"];
  const std::string next = "start it again: it continues from model.ckpt-" + std::to_string(step);
  EXPECT_EQ(status_["checkpoint"]["step"], step) << "nothing is lost";
  EXPECT_EQ(status_["unsaved_seconds"], 0);
  EXPECT_EQ(status_["notes"], nlohmann::json({"it stopped: preempted, to be started again", next}));
  EXPECT_THAT(status_text_, AllOf(HasSubstr("  note        it stopped: preempted"), HasSubstr("  note        " + next),
                                  Not(HasSubstr("no checkpoint"))));
  EXPECT_EQ(runs_["runs"][0]["end"], "ended");
  EXPECT_EQ(runs_["runs"][0]["why"], "preempted, to be started again");
  EXPECT_EQ(runs_["runs"][0]["saved_step"], step);
  EXPECT_THAT(runs_text_, AllOf(HasSubstr("ended: preempted, to be started again\n"), HasSubstr("\n" + next + "\n")));
}

TEST_F(LonghaulDiagnosis, OfATrainingWhoseSavesFail) {
  const auto training = train({"LONGHAUL_FAULTS=enospc@create(.data-):2+"});
  ASSERT_TRUE(training->prints("begins at step 0")) << training->errors();
  look_until(*training, 0, [](const nlohmann::json& now) { return now["checkpoint"].is_object(); });
  const int64_t saved = status_["checkpoint"]["step"];
  training->send(SIGUSR2);
  look_until(*training, 1, [](const nlohmann::json& now) { return now["failing_saves"].is_object(); });
  EXPECT_EQ(status_["state"], "training");
  EXPECT_GE(status_["failing_saves"]["in_a_row"], 1);
  EXPECT_THAT(status_["failing_saves"]["error"].get<std::string>(), HasSubstr("No space left on device"));
  EXPECT_NEAR(status_["failing_saves"]["since"].get<double>(), Clock::real().wall_time(), 300);
  EXPECT_EQ(status_["failing_saves"]["error"], runs_["failing_saves"]["error"]);
  const std::string what = " failed: .*model\\.ckpt-[0-9]+.*: No space left on device \\([^)]*" + std::string(kTime) +
                           "\\); steps " + std::to_string(saved + 1) + " to [0-9]+ \\([^)]+\\) are in no checkpoint; ";
  const std::string remedy =
      "training continues, and each save is tried again: remove the cause \\(if the disk is full, "
      "make room on it\\), and do not end the process";
  EXPECT_THAT(status_text_, ContainsRegex("\n  wrong +.*" + what + remedy));
  EXPECT_THAT(runs_text_, AllOf(ContainsRegex("running \\([0-9]+ failed save"), ContainsRegex(what + remedy)));
  EXPECT_GE(runs_["runs"][0]["failed_saves"], 1);
  training->send(SIGKILL);
  training->wait();
  look(1);
  EXPECT_EQ(status_["state"], "killed");
  EXPECT_THAT(status_text_, AllOf(ContainsRegex("wrong +the chief, process [0-9]+ of .* is dead and did not end by "
                                                "itself; once started again, it continues from model\\.ckpt-"),
                                  ContainsRegex(what + "remove the cause .* before you start it again")));
  EXPECT_EQ(runs_["runs"][0]["end"], "killed");
  EXPECT_THAT(runs_text_,
              ContainsRegex("\nonce started again, it continues from model\\.ckpt-" + std::to_string(saved)));
}

}  // namespace
}  // namespace longhaul

// What the page of a training program shows, in a browser: its progress, its checkpoints, its runs, its log, and what
// is wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/testing/needs_fixture.h"
#include "tests/browser/browser.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

class StatusContentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("browser", testing::Browser::is_there(), "chromium and chromium-driver are not installed");
    browser_ = std::make_unique<testing::Browser>();
    ASSERT_TRUE(browser_->is_open());
  }

  // A Supervisor's training (preemption_program.cc tells the environment), whose page is asked for from outside.
  void train(Words environment) {
    environment.insert(environment.begin(),
                       {"/usr/bin/env", "LONGHAUL_STATUS_ADDRESS=127.0.0.1:0", "STEP_TAKES_MS=20"});
    environment.insert(environment.end(), {PREEMPTION_PROGRAM, "supervisor", run_});
    training_ = std::make_unique<testing::Process>(environment, directory_.file("training"));
    for (int i = 0; i < 600 && port_of_page() == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // wait: polls: another process writes its log
    }
    ASSERT_GT(port_of_page(), 0) << training_->errors();
    browser_->open(fmt::format("http://127.0.0.1:{}/", port_of_page()));
  }
  int port_of_page() const {
    const std::string log = training_->errors(), url = "http://127.0.0.1:";
    const size_t at = log.find(url, log.find("status page of"));
    return at == log.npos ? 0 : std::atoi(log.c_str() + at + url.size());
  }
  // What the element shows, once it has that; else the test fails.
  std::string shown(const std::string& id, const std::string& part) {
    const std::string element = fmt::format("document.getElementById('{}')", id);
    EXPECT_TRUE(browser_->until(fmt::format("{}.innerText.includes({})", element, nlohmann::json(part).dump())))
        << id << " shows " << browser_->run("return " + element + ".innerText") << "\n"
        << training_->errors();
    return browser_->run("return " + element + ".innerText").get<std::string>();
  }

  const testing::TemporaryDirectory directory_;
  const std::string run_ = directory_.file("run");
  std::unique_ptr<testing::Process> training_;
  std::unique_ptr<testing::Browser> browser_;
};

TEST_F(StatusContentsTest, ATrainingThatWasKilledAndContinues) {
  train({"SAVES_AT=20"});
  shown("checkpoints", "model.ckpt-20");
  training_->send(SIGKILL);
  training_->wait();
  train({"SAVES_AT=1000000"});
  shown("phase", "training");
  EXPECT_THAT(shown("saves", "model.ckpt-20"), AllOf(HasSubstr("restored"), ContainsRegex("[0-9.]+ [GT]B free")));
  EXPECT_THAT(shown("progress", "step"), ContainsRegex("speed\\s+[0-9.]+ steps/s"));
  EXPECT_THAT(shown("runs", "killed"), AllOf(HasSubstr("to step"), ContainsRegex("2\\s")));
  EXPECT_THAT(shown("time", "of the time went to steps that were kept"),
              AllOf(HasSubstr("in 2 runs with 1 interruption"), HasSubstr("are in no checkpoint yet")));
  shown("log", "info status page of");
  EXPECT_EQ(browser_->run("return document.getElementById('trouble').hidden"), true);
  EXPECT_THAT(browser_->errors(), IsEmpty());
}

TEST_F(StatusContentsTest, SavesThatFailAreToldWithWhatAKillWouldLose) {
  train({"LONGHAUL_FAULTS=enospc@create(.data-):2+"});
  shown("saves", "model.ckpt-");
  training_->send(SIGUSR2);
  EXPECT_THAT(shown("trouble", "failed"), AllOf(HasSubstr("No space left"), HasSubstr("are in no checkpoint")));
  EXPECT_EQ(browser_->run("return document.getElementById('trouble').hidden"), false);
  EXPECT_THAT(shown("saves", "attempts failed"), HasSubstr("last"));
}

TEST_F(StatusContentsTest, ATrainingThatHangsIsCalledHung) {
  train({"SAVES_AT=20", "HANGS_AT=60", "HANG_ENDS_AFTER=100"});
  EXPECT_THAT(shown("phase", "hung: no step for"), ContainsRegex("[0-9.]+ s"));
  EXPECT_EQ(browser_->run("return document.getElementById('phase').className"), "bad");
}

}  // namespace
}  // namespace longhaul

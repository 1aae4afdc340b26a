// The buttons of a training's page, in a browser: what they ask of the training, and what they show when it refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "longhaul/testing/needs_fixture.h"
#include "longhaul/train/status/status_page.h"
#include "tests/browser/browser.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPageToken[] = "0123456789abcdef0123";
constexpr bool kYes = true, kNo = false;

class StatusButtonsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("browser", testing::Browser::is_there(), "chromium and chromium-driver are not installed");
    browser_ = std::make_unique<testing::Browser>();
    ASSERT_TRUE(browser_->is_open());
  }

  // A page of a training that has a coordinator and saves on request.
  void open(bool has_token = true) {
    const std::string token = has_token ? directory_.file("token") : "";
    if (has_token) {
      std::ofstream(token) << kPageToken << "\n";
      ASSERT_EQ(::chmod(token.c_str(), 0600), 0);
    }
    page_ = std::make_unique<StatusPage>(
        RunStatusOptions{.page = {.address = "127.0.0.1:0", .token_file = token}, .directory = directory_.path()},
        AccessNames{});
    page_->status()->begins(nullptr);
    page_->status()->stopped_by(coord_);
    page_->begin();
    browser_->open(fmt::format("http://127.0.0.1:{}/", page_->port()));
    ASSERT_TRUE(browser_->until("document.querySelector('#phase').textContent.startsWith('preparing')"));
  }
  void train() {
    page_->status()->trains();
    serves_ = page_->status()->serve_saves(coord_);
  }

  // The whole of what is shown below the buttons, once it is this.
  void expect_answer(const std::string& part) {
    EXPECT_TRUE(browser_->until(
        fmt::format("document.querySelector('#answer').textContent.includes({})", nlohmann::json(part).dump())))
        << "shown is: " << browser_->run("return document.querySelector('#answer').textContent") << ", not: " << part;
  }
  // A browser complains of each refusal.
  void expect_complaints(const std::vector<std::string>& parts) {
    const std::vector<std::string> errors = browser_->errors();
    ASSERT_THAT(errors, SizeIs(parts.size()));
    for (size_t i = 0; i < parts.size(); ++i) EXPECT_THAT(errors[i], HasSubstr(parts[i]));
  }

  const testing::TemporaryDirectory directory_;
  Coordinator coord_;
  std::unique_ptr<StatusPage> page_;
  std::shared_ptr<const Coordinator> serves_;
  std::unique_ptr<testing::Browser> browser_;
};

TEST_F(StatusButtonsTest, ACheckpointIsAskedForWithTheTokenAlone) {
  open();
  train();
  browser_->click("#checkpoint");
  expect_answer("This needs the token of StatusOptions::token_file");
  expect_complaints({"401"});
  browser_->type("#token", "0123456789abcdef9999");
  browser_->click("#checkpoint");
  expect_answer("This needs the token of StatusOptions::token_file");
  expect_complaints({"401"});
  EXPECT_FALSE(page_->status()->has_save_request());

  browser_->type("#token", kPageToken);
  browser_->click("#checkpoint");
  expect_answer("A checkpoint is saved after the current step, and training continues.");
  EXPECT_TRUE(page_->status()->take_save_request());
  EXPECT_FALSE(coord_.should_stop());
  expect_complaints({});
}

TEST_F(StatusButtonsTest, AStopIsConfirmedFirst) {
  open();
  train();
  browser_->type("#token", kPageToken);
  browser_->click("#stop");
  EXPECT_EQ(browser_->answer_dialog(kNo), "Stop the training, with a last checkpoint?");
  browser_->click("#checkpoint");  // what comes next on this page, so that a stop would have been seen
  expect_answer("A checkpoint is saved");
  EXPECT_FALSE(coord_.should_stop());

  browser_->click("#stop");
  browser_->answer_dialog(kYes);
  expect_answer("Training stops after the current step, as the program does then: with a last checkpoint.");
  EXPECT_TRUE(coord_.should_stop());
  expect_complaints({});
}

TEST_F(StatusButtonsTest, AStopWithoutTheTokenIsRefused) {
  open();
  train();
  browser_->click("#stop");
  browser_->answer_dialog(kYes);
  expect_answer("This needs the token of StatusOptions::token_file");
  EXPECT_FALSE(coord_.should_stop());
  expect_complaints({"401"});
}

TEST_F(StatusButtonsTest, WithoutATokenFileTheyTellThatThereIsNone) {
  open(/*has_token=*/false);
  train();
  browser_->type("#token", kPageToken);
  browser_->click("#checkpoint");
  expect_answer("This needs a token, and the program has none: set StatusOptions::token_file.");
  EXPECT_FALSE(page_->status()->has_save_request());
  expect_complaints({"403"});
}

TEST_F(StatusButtonsTest, ARequestThatNobodyServesIsToldSo) {
  open();
  browser_->type("#token", kPageToken);
  browser_->click("#checkpoint");
  expect_answer("No checkpoint is saved on request: no session trains, or it saves none.");
  expect_complaints({"409"});
}

TEST_F(StatusButtonsTest, AProcessThatHasEndedIsTold) {
  open();
  train();
  expect_complaints({});
  page_->end();
  browser_->click("#checkpoint");
  expect_answer("does not answer");
  EXPECT_TRUE(browser_->until("document.querySelector('#phase').textContent.includes('does not answer')"));
}

}  // namespace
}  // namespace longhaul

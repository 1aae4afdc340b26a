#include "longhaul/train/supervisor/progress_service.h"

#include "longhaul/testing/temporary_output_fixture.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgressServiceTest : public SupervisorFixture {
 protected:
  ProgressServiceTest() {
    add_step(5);
    options.services.progress = ProgressOptions{.out = output.file()};
    options.chief.status.last_step = 10;
  }
  // Makes steps and moves the time on, until there are so many lines.
  void train_until(Session& session, size_t lines) {
    eventually([&] {
      session.run(train);
      clock.advance(Seconds{2.5});
      return output.lines().size() >= lines;
    });
  }
  const TemporaryOutput output;
};

TEST_F(ProgressServiceTest, ShowsTheStepTheSavesAndTheEnd) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return !output.lines().empty() && !sv.saver()->last_saved().empty(); });
    session.run(train);
  });
  const std::vector<std::string> lines = output.lines();
  EXPECT_THAT(lines.front(), ContainsRegex("^step 5 of 10"));
  EXPECT_THAT(lines.back(), ContainsRegex("^step 6 of 10  .* left  saved [0-9]+ s ago$"));
}

TEST_F(ProgressServiceTest, ShowsTheValuesOfAStep) {
  options.services.progress->values = {{"now", step}};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { train_until(session, 4); });
  EXPECT_THAT(output.lines()[2], ContainsRegex("^step [0-9]+ of 10  now [0-9]+  "));
}

TEST_F(ProgressServiceTest, WithoutStepsThereIsOneLine) {
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    eventually([&] { return output.lines().size() == 1; });
    const int before = last_session->runs();
    eventually([&] {
      clock.advance(Seconds{5});
      return last_session->runs() >= before + 8;  // looks at the step
    });
  });
  EXPECT_EQ(output.lines().size(), 1u);
}

// A session would have restored a checkpoint, against which its end would count.
TEST_F(ProgressServiceTest, WhatIsWrongIsSaidBeforeThereIsASession) {
  Graph without_step;
  SupervisorOptions others = options;
  others.graph = &without_step;
  EXPECT_THAT([&] { Supervisor sv(others); }, ::testing::ThrowsMessage<InvalidArgumentError>(
                                                  HasSubstr("ServiceOptions::progress needs a global step")));
  others = options;
  others.services.progress->out = nullptr;
  EXPECT_THROW(Supervisor{others}, InvalidArgumentError);
  others = options;
  others.services.progress->values = {"nothing:0"};
  EXPECT_THROW(Supervisor{others}, NotFoundError);
  others.services.progress->values = {{"train", Fetch(train)}};
  EXPECT_THROW(Supervisor{others}, InvalidArgumentError);
}

TEST_F(ProgressServiceTest, ValuesThatNoStepComputesAreGivenUp) {
  const Output fed = ops::placeholder(root, kFloat);
  options.services.progress->values = {{"fed", fed}};
  const LogRecorder log;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return last_session->step_fetch_pending(); });
    eventually([&] {
      session.run(train);
      clock.advance(Seconds{2.5});
      return log.text().find("is shown without its values") != std::string::npos;
    });
    EXPECT_FALSE(last_session->step_fetch_pending());
    train_until(session, output.lines().size() + 1);
  });
}

TEST_F(ProgressServiceTest, AStopWithAnErrorIsNotShownAsAnEnd) {
  Supervisor sv(options);
  EXPECT_THROW(sv.managed_session([&](Session& session) {
    eventually([&] { return output.lines().size() == 1; });
    session.run(train);
    throw InternalError("diverged");
  }),
               InternalError);
  EXPECT_EQ(output.lines().size(), 1u);
}

TEST_F(ProgressServiceTest, AProcessThatIsNotTheChiefShowsItsSteps) {
  Graph workers;
  const Scope placed = Scope(workers).with_device("/job:localhost");
  const Variable its_step = ops::create_global_step(placed);
  const Operation its_train = ops::assign_add(placed, its_step, ops::constant(placed, int64_t{1})).op();
  const Operation at_five = ops::assign(placed, its_step, ops::constant(placed, int64_t{5})).op();
  options.graph = &workers;
  options.is_chief = false;
  Supervisor worker(options);
  make_scripted_session(workers, server)->run(at_five);
  worker.managed_session([&](Session& session) { session.run(its_train); });
  EXPECT_THAT(output.lines().back(), ContainsRegex("^step 6 of 10"));
  EXPECT_THAT(output.lines().back(), Not(HasSubstr("save")));
}

}  // namespace
}  // namespace longhaul

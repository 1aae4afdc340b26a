// What a Trainer does about a loss that goes bad.
#include <fmt/format.h>

#include <limits>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

DivergenceOptions with_margin(int64_t steps) {
  return {.watch = {.window = 8, .warm_up = 4, .in_a_row = 1}, .margin_steps = steps};
}

// A program whose examples are bad in some steps, and which saves after every third step.
struct Diverging : Program {
  Diverging(const std::string& directory, const DivergenceOptions& divergence,
            std::function<void(SupervisorOptions&)> change = {})
      : Program(directory, {.summary_steps = 1, .divergence = divergence, .supervisor = std::move(change)}) {
    trainer->after_every(3, [this] { save(); });
  }
  int run(int64_t steps, std::vector<int64_t> bad) {
    return trainer->run([&] {
      for (const int64_t step : trainer->steps(steps)) make(step, bad);
    });
  }
  // Each step's examples follow from its number.
  void make(int64_t number, const std::vector<int64_t>& bad) {
    made.push_back(number);
    const bool is_bad = std::find(bad.begin(), bad.end(), number) != bad.end();
    step(torch::full({4, 4}, is_bad ? kNan : 0.01 * static_cast<double>(number % 5)));
  }
  std::vector<int64_t> made;
};

class TrainerDivergenceTest : public TrainerTest {
 protected:
  static RunHistory journal_of(const std::string& directory) {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory))).history;
  }

  const Logged logged_;
};

TEST_F(TrainerDivergenceTest, TheModelGoesBackAndTheStepsUpToTheBadOneAreLeftOut) {
  std::vector<at::Tensor> state;
  {
    Diverging program(fresh("run"), with_margin(2));
    EXPECT_EQ(program.run(12, {7}), 0);
    EXPECT_THAT(program.made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)) << "back to 3, and on with 8";
    EXPECT_EQ(program.trainer->step(), 12);
    EXPECT_THAT(logged_.all(), Contains(HasSubstr("the loss of step 7 is NaN. The model goes back to")));
    EXPECT_THAT(logged_.all(), Contains(HasSubstr("steps 3 to 7 are left out")));
    state = program.state();
  }
  for (const at::Tensor& value : state) EXPECT_TRUE(value.isfinite().all().item<bool>());

  // Exactly as a run that never made them.
  Diverging other(fresh("other"), with_margin(2));
  EXPECT_EQ(other.trainer->run([&] {
    for (const int64_t step : other.trainer->steps(7)) other.make(step < 3 ? step : step + 5, {});
  }),
            0);
  expect_same(state, other.state(), "without the steps");
}

TEST_F(TrainerDivergenceTest, WithoutSkippingTheStepsAreMadeAgainWithWhatTheProgramHasChanged) {
  DivergenceOptions options = with_margin(0);
  options.skip_batches = false;
  std::vector<std::string> told;
  Diverging* current = nullptr;
  options.on_rollback = [&](Session&, const Rollback& rollback) {
    told.push_back(rollback.to_text());
    for (auto& group : current->optimizer->param_groups()) group.options().set_lr(group.options().get_lr() / 2);
  };
  Diverging program(fresh("run"), options);
  current = &program;
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(9))
      program.make(step, told.empty() ? std::vector<int64_t>{7} : std::vector<int64_t>{});
  }),
            0);
  EXPECT_THAT(told, ElementsAre("1 7 8 6 nan 0 model.ckpt-6"));
  EXPECT_THAT(program.made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 8));
  EXPECT_DOUBLE_EQ(program.optimizer->param_groups()[0].options().get_lr(), 0.005);
  EXPECT_THAT(logged_.warnings(),
              ElementsAre(AllOf(HasSubstr("rolled back to step 6 after the loss of step 7 went bad"),
                                HasSubstr("2 steps are undone"))));
}

// What a person reads in the night: what has happened, and nothing that has not.
TEST_F(TrainerDivergenceTest, TheLogAndTheJournalSayThatTheModelWentBackAndNotThatTheTrainingEnds) {
  Diverging program(fresh("run"), with_margin(2));
  EXPECT_EQ(program.run(12, {7}), 0);
  EXPECT_THAT(logged_.all(), Contains(HasSubstr("rolled back to step 3 after the loss of step 7 went bad: 5 steps are "
                                                "undone, up to step 8; continues from")));
  EXPECT_THAT(logged_.all(), Contains(HasSubstr("run() calls its body again, with the model of step 3")));
  for (const char* wrong : {"ends with an error", "ended with an error", "made again", "in no checkpoint"}) {
    EXPECT_THAT(logged_.all(), Not(Contains(HasSubstr(wrong)))) << wrong;
  }
  const RunHistory history = journal_of(fresh("run"));
  ASSERT_EQ(history.runs().size(), 1u) << "the same run goes on";
  EXPECT_EQ(history.runs()[0].end, PastRun::End::kEnded);
  EXPECT_EQ(history.rollbacks().count(), 1);
}

// The lock would have to be taken anew, and the journal's line would be lost with its chief.
TEST_F(TrainerDivergenceTest, AFullDiskAtARollbackEndsNothing) {
  testing::FaultyFileSystem files;
  Diverging program(fresh("run"), with_margin(2), [&](SupervisorOptions& options) { options.files = &files; });
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(12)) {
      if (step == 7) files.fail_writes_after(0);
      if (step == 8) {
        EXPECT_EQ(journal_of(fresh("run")).rollbacks().count(), 0) << "it could not be written";
        files.heal();
      }
      program.make(step, {7});
    }
  }),
            0);
  EXPECT_THAT(program.made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(program.trainer->step(), 12);
  EXPECT_THAT(logged_.warnings(), Contains(HasSubstr("run.journal cannot be written; training continues")));
  EXPECT_EQ(journal_of(fresh("run")).rollbacks().count(), 1) << "now it is";
}

// Killed after each step that is made, and after each checkpoint; on_rollback included.
TEST_F(TrainerDivergenceTest, ARunThatIsCutAnywhereEndsWithTheSameBytes) {
  const std::vector<int64_t> bad{7, 10};
  Diverging* current = nullptr;
  DivergenceOptions options = with_margin(2);
  options.on_rollback = [&](Session&, const Rollback&) {
    for (auto& group : current->optimizer->param_groups()) group.options().set_lr(group.options().get_lr() * 0.7);
  };
  std::vector<at::Tensor> expected;
  std::vector<int64_t> made;
  {
    Diverging whole(fresh("whole"), options);
    current = &whole;
    ASSERT_EQ(whole.run(20, bad), 0);
    expected = whole.state();
    made = whole.made;
  }
  for (size_t cut = 1; cut < made.size(); ++cut) {
    for (const bool in_step : {false, true}) {
      const std::string place = fresh(fmt::format("{}_{}", cut, in_step));
      {
        Diverging first(place, options);
        current = &first;
        ASSERT_EQ(first.trainer->run([&] {
          for (const int64_t step : first.trainer->steps(20)) {
            if (in_step && first.made.size() == cut) throw std::runtime_error("crash");
            first.make(step, bad);
            if (!in_step && first.made.size() == cut) throw std::runtime_error("crash");
          }
        }),
                  1);
      }
      Diverging second(place, options);
      current = &second;
      ASSERT_EQ(second.run(20, bad), 0) << cut;
      expect_same(second.state(), expected, fmt::format("cut at {}", cut));
    }
  }
}

// The rollback is in the journal, but the model has not begun again.
TEST_F(TrainerDivergenceTest, ARunThatIsCutAsItGoesBackEndsWithTheSameBytes) {
  std::vector<at::Tensor> expected;
  for (const int crashes : {0, 1}) {
    Diverging* current = nullptr;
    DivergenceOptions options = with_margin(2);
    int calls = 0;
    options.on_rollback = [&](Session&, const Rollback&) {
      for (auto& group : current->optimizer->param_groups()) group.options().set_lr(group.options().get_lr() * 0.7);
      if (++calls <= crashes) throw std::runtime_error("crash");
    };
    const std::string place = fresh(fmt::format("{}", crashes));
    if (crashes > 0) {
      Diverging first(place, options);
      current = &first;
      EXPECT_EQ(first.run(12, {7}), 1);
    }
    Diverging program(place, options);
    current = &program;
    EXPECT_EQ(program.run(12, {7}), 0);
    EXPECT_EQ(calls, 1 + crashes);
    if (expected.empty()) expected = program.state();
    expect_same(program.state(), expected, "after a crash in on_rollback");
  }
}

TEST_F(TrainerDivergenceTest, InEpochsTheBatchesAreLeftOutAndTheCodeAroundThemRuns) {
  const auto body = [](Diverging& program, std::vector<int64_t>& epochs) {
    for (const int64_t epoch : program.trainer->epochs(3)) {
      for (const int64_t i : program.trainer->batches(4)) program.make(epoch * 4 + i, {5});
      epochs.push_back(epoch);
    }
  };
  DivergenceOptions options = with_margin(0);
  Diverging program(fresh("run"), options);
  std::vector<int64_t> epochs;
  EXPECT_EQ(program.trainer->run([&] { body(program, epochs); }), 0);
  EXPECT_THAT(program.made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)) << "back to 3, and on with 6";
  EXPECT_THAT(epochs, ElementsAre(0, 0, 1, 2)) << "the first epoch ends once more: its last batch is left out";
  EXPECT_EQ(program.trainer->step(), 12);
}

TEST_F(TrainerDivergenceTest, AfterSoManyRollbacksTheTrainingEndsAndKeepsTheGoodCheckpoint) {
  DivergenceOptions options = with_margin(2);
  options.max_rollbacks = 2;
  const std::vector<int64_t> bad{7, 8, 9, 30};
  {
    Diverging program(fresh("run"), options);
    EXPECT_EQ(program.run(40, bad), 1);
    EXPECT_THAT(error_of(program), HasSubstr("Training ends after 2 rollbacks within 10000 steps"));
    EXPECT_THAT(error_of(program), HasSubstr("The last good checkpoint is"));
    EXPECT_FALSE(checkpoint_exists(FileSystem::real(), directory_.file("run/model.ckpt-9")));
  }
  {
    // Nor does a restart begin to count anew.
    Diverging program(fresh("run"), options);
    EXPECT_EQ(program.run(40, bad), 1);
    EXPECT_THAT(program.made, ElementsAre(9));
    EXPECT_THAT(error_of(program), HasSubstr("Training ends after 2 rollbacks"));
  }
  options.within_steps = 10;
  Diverging program(fresh("run"), options);
  EXPECT_EQ(program.run(40, {30}), 0) << "the others are long ago";
  EXPECT_EQ(program.trainer->step(), 40);
}

TEST_F(TrainerDivergenceTest, WithoutAGoodCheckpointTheTrainingEnds) {
  Diverging program(fresh("run"), with_margin(100));
  EXPECT_EQ(program.run(12, {7}), 1);
  EXPECT_THAT(error_of(program), HasSubstr("the loss of step 7 is NaN. Training ends, because there is no checkpoint"));
  EXPECT_THROW(std::rethrow_exception(program.trainer->error()), DivergedError);
}

TEST_F(TrainerDivergenceTest, AfterAnEndWithoutAGoodCheckpointTheNextStartTakesTheOldestAndSaysSo) {
  {
    Diverging program(fresh("run"), with_margin(100));
    program.trainer->after_every(3, [&] { EXPECT_GT(program.trainer->step(), 0); });
    EXPECT_EQ(program.run(12, {7}), 1);
    EXPECT_THAT(error_of(program), HasSubstr("The next start restores the oldest checkpoint that it finds, now " +
                                             fresh("run/model.ckpt-3")));
  }
  EXPECT_EQ(journal_of(fresh("run")).rollbacks().undone_after(), 0);
  Diverging program(fresh("run"), with_margin(100));
  EXPECT_EQ(program.run(12, {}), 0);
  EXPECT_EQ(program.made.front(), 3);
  EXPECT_THAT(logged_.warnings(), Contains(HasSubstr("model.ckpt-6 is skipped in favour of an older one")));
  EXPECT_THAT(logged_.warnings(), Contains(HasSubstr("model.ckpt-3 is restored although the loss went bad")));
}

TEST_F(TrainerDivergenceTest, TheOptionOfTheSupervisorIsRefused) {
  Diverging program(fresh("run"), with_margin(2),
                    [](SupervisorOptions& options) { options.services.divergence = DivergenceOptions{}; });
  EXPECT_EQ(program.run(3, {}), 1);
  EXPECT_THAT(error_of(program), HasSubstr("set TrainerOptions::divergence"));
}

TEST_F(TrainerDivergenceTest, TheLastGoodCheckpointIsNotDeleted) {
  const auto keep_one = [](SupervisorOptions& options) {
    options.saver = std::make_shared<Saver>(SaverOptions{.graph = options.graph, .max_to_keep = 1});
  };
  Diverging program(fresh("run"), with_margin(7), keep_one);
  EXPECT_EQ(program.run(24, {20}), 0);
  EXPECT_THAT(program.made, Contains(21));
  EXPECT_THAT(logged_.all(), Contains(HasSubstr("The model goes back to " + directory_.file("run/model.ckpt-9"))))
      << "15 and 18 are not old enough";
}

TEST_F(TrainerDivergenceTest, ALossThatRisesTooFarIsBadToo) {
  DivergenceOptions options = with_margin(0);
  Diverging program(fresh("run"), options);
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(12)) {
      program.make(step, {});
      if (step == 10) program.trainer->log("loss", 1e6);  // the last one of a step counts, also a number
    }
  }),
            0);
  EXPECT_THAT(logged_.all(), Contains(HasSubstr("the loss of step 10 is 1e+06. The model goes back to")));
}

TEST_F(TrainerDivergenceTest, ItCannotBeSwallowed) {
  Diverging program(fresh("run"), with_margin(0));
  bool was_caught = false;
  EXPECT_EQ(program.trainer->run([&] {
    try {
      for (const int64_t step : program.trainer->steps(12)) program.make(step, {7});
    } catch (...) {
      was_caught = true;
    }
  }),
            0);
  EXPECT_TRUE(was_caught);
  EXPECT_THAT(program.made, Contains(11));
  for (const at::Tensor& value : program.state()) EXPECT_TRUE(value.isfinite().all().item<bool>());
}

TEST_F(TrainerDivergenceTest, WithoutAJournalItIsRefused) {
  {
    Diverging program(fresh("run"), with_margin(0),
                      [](SupervisorOptions& options) { options.chief.keep_journal = false; });
    EXPECT_EQ(program.run(3, {}), 1);
    EXPECT_THAT(error_of(program), HasSubstr("leave ChiefOptions::keep_journal and ChiefOptions::lock.lock on"));
  }
  EXPECT_THROW(Diverging(fresh("other"), {.margin_steps = -1}), InvalidArgumentError);
}

TEST_F(TrainerDivergenceTest, AnErrorOfOnRollbackEndsTheTraining) {
  DivergenceOptions options = with_margin(0);
  options.on_rollback = [](Session&, const Rollback&) { throw std::runtime_error("no such group"); };
  Diverging program(fresh("run"), options);
  EXPECT_EQ(program.run(12, {7}), 1);
  EXPECT_THAT(error_of(program), HasSubstr("no such group"));
}

TEST_F(TrainerDivergenceTest, WhoUsesTheNewestWeightsIsNotToldOfAnEnd) {
  NewestWeights newest;
  DivergenceOptions options = with_margin(0);
  bool was_closed = true;
  options.on_rollback = [&](Session&, const Rollback&) { was_closed = newest.is_closed(); };
  Diverging program(fresh("run"), options);
  program.trainer->publish_weights(newest);
  EXPECT_EQ(program.run(12, {7}), 0);
  EXPECT_FALSE(was_closed);
  EXPECT_TRUE(newest.is_closed());
}

TEST_F(TrainerDivergenceTest, ALossThatIsNeverLoggedIsTold) {
  Diverging program(fresh("run"), with_margin(0));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(120)) program.net->zero_grad();
  }),
            0);
  EXPECT_THAT(logged_.warnings(), Contains(HasSubstr("100 steps in a row have logged none")));
}

TEST_F(TrainerDivergenceTest, TensorBoardShowsOneCurve) {
  Diverging program(fresh("run"), with_margin(2));
  EXPECT_EQ(program.run(12, {7}), 0);
  const auto curves = independent::CurveReader::read(directory_.file("run"), independent::Rule::kStart);
  EXPECT_THAT(curves.at("loss").steps(), ElementsAre(0, 1, 2, 8, 9, 10, 11));
  EXPECT_THAT(curves.at(kRollbacksTag).steps(), ElementsAre(3));
}

}  // namespace
}  // namespace longhaul

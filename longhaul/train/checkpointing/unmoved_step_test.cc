// Trainings whose variables change while the global step does not.
#include <filesystem>

#include "longhaul/ops/external_variable.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/checkpointing/final_checkpoint.h"
#include "longhaul/train/saving/saver_fixture.h"
#include "longhaul/train/signals/preemption.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class UnmovedStep : public SaverFixture {
 protected:
  std::string save() { return saver.save(*session, path, step, {.skip_if_saved = true}); }
  float saved(const Variable& variable) {
    return BundleReader(files, path + "-0").read(variable.info().ref.op().name()).item<float>();
  }
  // Whether a save writes a checkpoint.
  bool writes(Saver& any) {
    bool wrote = false;
    any.save(*session, path, step, {.skip_if_saved = true, .before_write = [&](auto) { wrote = true; }});
    return wrote;
  }
  void move_step() { session->run(ops::assign_add(root, step, ops::constant(root, int64_t{1})).op()); }

  Saver saver{options};
};

TEST_F(UnmovedStep, IsSavedWithWhatChanged) {
  save();
  set(a, 8);
  EXPECT_EQ(save(), path + "-0");
  EXPECT_EQ(saved(a), 8);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path + "-0")) << "it is listed once";
  EXPECT_EQ(state().all_model_checkpoint_paths.size(), 1u);
}

TEST_F(UnmovedStep, IsNotSavedWhereNothingChanged) {
  EXPECT_TRUE(writes(saver));
  EXPECT_FALSE(writes(saver));
  set(a, 1);
  EXPECT_FALSE(writes(saver)) << "it was assigned what it had";
  set(a, 3);
  EXPECT_TRUE(writes(saver));
}

TEST_F(UnmovedStep, IsNotSavedAgainAfterARestartThatChangedNothing) {
  save();
  const auto again = make_scripted_session(graph);
  saver.restore(*again, path + "-0");
  EXPECT_TRUE(saver.is_as_restored());
  session->run(ops::global_variables_initializer(root));
  EXPECT_FALSE(writes(saver));
  EXPECT_TRUE(saver.is_as_restored());
  set(b, 5);
  EXPECT_TRUE(writes(saver));
  EXPECT_FALSE(saver.is_as_restored());
}

TEST_F(UnmovedStep, OfAnotherSessionIsComparedWithTheDisk) {
  save();
  session = make_scripted_session(graph);
  session->run(ops::global_variables_initializer(root));
  EXPECT_FALSE(writes(saver));
  set(a, 4);
  EXPECT_TRUE(writes(saver));
}

TEST_F(UnmovedStep, OfTwoSaversThatTakeTurnsIsNeverTheOthers) {
  Saver other({.graph = &graph, .var_list = std::vector<SaveEntry>{a, step}, .name = "other", .files = &files});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(writes(saver));
    EXPECT_TRUE(BundleReader(files, path + "-0").has("b"));
    EXPECT_TRUE(writes(other));
    EXPECT_FALSE(BundleReader(files, path + "-0").has("b"));
    EXPECT_FALSE(writes(other));
  }
}

TEST_F(UnmovedStep, WhoseCheckpointIsGoneOrDamagedIsSaved) {
  const std::string data = path + "-0.data-00000-of-00001";
  const LogRecorder quiet;
  for (const char* ending : {".index", ".meta", ".data-00000-of-00001"}) {
    save();
    files.remove(path + "-0" + ending);
    EXPECT_TRUE(writes(saver)) << ending;
  }
  std::string bytes = read_file(files, data);
  bytes[1] ^= 1;
  write_file_atomically(files, data, bytes);
  EXPECT_TRUE(writes(saver)) << "a flipped bit";
}

TEST_F(UnmovedStep, ThatIsWrittenButNotListedIsOnlyListed) {
  Saver first({.graph = &graph, .name = "first", .files = &files});
  first.save(*session, path, step, {.write_state = false});
  EXPECT_FALSE(writes(saver)) << "another one wrote the same";
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(path + "-0"));
}

// A save that replaces a checkpoint of the same name, cut off at every operation.
TEST_F(UnmovedStep, LeavesTheOldOrTheNewWhenASaveIsCutOff) {
  const LogRecorder quiet;
  save();
  for (int n = 0;; ++n) {
    const float before = saved(a);
    set(a, before + 1);
    files.fail_operation(n, testing::FaultyFileSystem::Fault::kForGood);
    const std::string error = error_of([&] { save(); });
    files.heal();
    EXPECT_THAT(BundleReader(files, path + "-0").verify(), IsEmpty()) << n;
    EXPECT_THAT(saved(a), ::testing::AnyOf(before, before + 1)) << n;
    save();
    EXPECT_EQ(saved(a), before + 1) << n;
    if (error.empty()) break;
    ASSERT_LT(n, 100);
  }
}

TEST_F(UnmovedStep, IsWarnedOfOnceWhereVariablesChange) {
  const LogRecorder log;
  save();
  save();
  EXPECT_THAT(log.text(LogLevel::kWarning), IsEmpty());
  set(a, 8);
  save();
  const std::string text = log.text(LogLevel::kWarning);
  EXPECT_THAT(text, AllOf(HasSubstr("the global step is still 0 although variables have changed"),
                          HasSubstr("pass the step to minimize(), or run assign_add on it")));
  set(a, 9);
  save();
  EXPECT_EQ(log.text(LogLevel::kWarning), text);
}

TEST_F(UnmovedStep, OfABoundProgramIsToldWhatCountsItsSteps) {
  ops::program_step(root, step, {}, [](int64_t, const std::vector<Tensor>&) {});
  const LogRecorder log;
  save();
  set(a, 8);
  save();
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("run TorchTraining::train_op for each step"),
                    HasSubstr("leave TorchTrainingOptions::counts_"), Not(HasSubstr("minimize()"))));
}

TEST_F(UnmovedStep, IsNotBlamedWhereTheDisksCopyIsDamagedOrReplaced) {
  save();
  flip_a_bit(path + "-0.data-00000-of-00001");
  flip_a_bit(path + "-0.index");
  const LogRecorder log;
  save();
  EXPECT_THAT(log.text(), AllOf(HasSubstr(path + "-0 was replaced by another program after it was saved"),
                                Not(HasSubstr("still 0"))));
  const auto committed = std::filesystem::last_write_time(path + "-0.index");
  flip_a_bit(path + "-0.index");
  std::filesystem::last_write_time(path + "-0.index", committed);
  save();
  EXPECT_THAT(log.text(), AllOf(HasSubstr(path + "-0 is damaged on disk"), Not(HasSubstr("still 0"))));
  set(a, 5);
  save();
  EXPECT_THAT(log.text(), HasSubstr("the global step is still 0"));
}

TEST_F(UnmovedStep, IsWarnedOfAfterARestore) {
  save();
  saver.restore(*session, path + "-0");
  const LogRecorder log;
  set(a, 8);
  save();
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("still 0"));
}

TEST_F(UnmovedStep, IsNotWarnedOfWhereStepsWereMadeBefore) {
  const LogRecorder log;
  save();
  move_step();
  save();
  set(a, 8);
  save();
  EXPECT_EQ(BundleReader(files, path + "-1").read("a").item<float>(), 8) << "averages, swapped in at the end";
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("still")));
}

// What save_once() tells of it.
class UnmovedStepToldOf : public UnmovedStep {
 protected:
  UnmovedStepToldOf() {
    target.before_write = [this](std::optional<int64_t> at) { written.push_back(at.value_or(-1)); };
    target.costs = [this](const SaveReport& report) { return costs.push_back(report.prefix), SaveCosts(); };
  }
  SaveAttempts attempts;
  SaveTarget target{saver, attempts, path, step};
  std::vector<int64_t> written;
  std::vector<std::string> costs;
};

TEST_F(UnmovedStepToldOf, IsAnnouncedOnlyWhenItIsWritten) {
  for (int i = 0; i < 3; ++i) save_once(target, *session);
  EXPECT_THAT(written, ElementsAre(0));
  set(a, 8);
  for (int i = 0; i < 3; ++i) save_once(target, *session);
  EXPECT_THAT(written, ElementsAre(0, 0));
  EXPECT_THAT(costs, ElementsAre(path + "-0", path + "-0"));
}

TEST_F(UnmovedStepToldOf, IsSavedAtAPreemptionThoughTheTimeMayNotSuffice) {
  BadDisk disk;
  disk.before_rename = [&](const std::string&, const std::string& to) {
    if (to.ends_with(".index")) clock.advance(Seconds{8});
  };
  Saver slow({.graph = &graph, .name = "slow", .files = &disk, .clock = &clock});
  const SaveTarget slowly{slow, attempts, path, step};
  save_once(slowly, *session);
  Preemption preemption({.clock = &clock});
  preemption.preempt(Seconds{5});
  set(a, 8);
  EXPECT_TRUE(save_final_checkpoint(slowly, *session, &preemption));
  EXPECT_EQ(saved(a), 8);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/base/no_steps_expected.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/events/file_writer_cache.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/hooks/checkpoint_saver_fixture.h"
#include "longhaul/train/sessions/scaffold.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CheckpointSaverTest, ItWantsSecondsOrSteps) {  // HC-1
  auto none = every(1);
  none.save_steps.reset();
  EXPECT_THROW(CheckpointSaverHook{none}, InvalidArgumentError);
  auto both = every(1);
  both.save_secs = Seconds{1};
  EXPECT_THROW(CheckpointSaverHook{both}, InvalidArgumentError);
}

TEST_F(CheckpointSaverTest, ItWantsADirectory) {
  auto nowhere = every(1);
  nowhere.checkpoint_dir.clear();
  EXPECT_THAT(error_of([&] { CheckpointSaverHook{nowhere}; }), HasSubstr("needs a checkpoint_dir"));
}

TEST_F(CheckpointSaverTest, ItTakesASaverOrAScaffold) {  // HC-1
  auto both = every(1);
  both.scaffold = std::make_shared<Scaffold>();
  EXPECT_THROW(CheckpointSaverHook{both}, InvalidArgumentError);
}

TEST_F(CheckpointSaverTest, WithoutThemItTakesTheOneSaverOfTheCollection) {  // HC-1
  auto neither = every(1);
  neither.saver = nullptr;
  CheckpointSaverHook none(neither);
  EXPECT_THAT(error_of([&] { start(none); }), HasSubstr("the graph's collection savers is empty"));
  const std::string description = saver->to_proto().SerializeAsString();
  graph.add_to_collection(collections::kSavers, description);
  CheckpointSaverHook one(neither);
  start(one);
  EXPECT_EQ(saved(), 0);
  graph.add_to_collection(collections::kSavers, description);
  CheckpointSaverHook several(neither);
  EXPECT_THROW(start(several), FailedPreconditionError);
}

TEST_F(CheckpointSaverTest, TheSaverOfTheCollectionGoesOnWithTheCheckpointsThatThereAre) {
  auto neither = every(1);
  neither.saver = nullptr;
  graph.add_to_collection(collections::kSavers, saver->to_proto().SerializeAsString());
  for (int restart = 0; restart < 2; ++restart) {
    CheckpointSaverHook hook(neither);
    start(hook);
    for (int i = 0; i < 4; ++i) train(hook);
  }
  EXPECT_EQ(read_checkpoint_state(FileSystem::real(), directory.path()).state.all_model_checkpoint_paths.size(), 5u);
  EXPECT_FALSE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-3")));
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-4")));
}

TEST_F(CheckpointSaverTest, AScaffoldsSaverIsTheOneThatItHasWhenItIsFinalized) {  // HC-1
  auto with = every(1);
  with.saver = nullptr;
  const auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.saver = saver});
  with.scaffold = scaffold;
  CheckpointSaverHook hook(with);
  start(hook);
  EXPECT_EQ(saver->last_saved(), directory.file("model.ckpt-0"));
}

TEST_F(CheckpointSaverTest, TheFirstCheckpointComesBeforeTheFirstStep) {  // HC-3, HC-2
  CheckpointSaverHook hook(every(2));
  start(hook);
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-0")));
  EXPECT_EQ(train_and_look(hook), 0);
  EXPECT_EQ(train_and_look(hook), 2);
}

TEST_F(CheckpointSaverTest, WithoutAWriterItTakesTheOneThatItsDirectoryShares) {  // HC-2
  const testing::TemporaryDirectory elsewhere;
  const auto shared = FileWriterCache::get(elsewhere.path(), {.clock = &clock});
  auto with = every(1);
  with.checkpoint_dir = elsewhere.path();
  with.summary_writer = nullptr;
  CheckpointSaverHook hook(with);
  start(hook);
  shared->flush();
  EXPECT_THAT(describe(events_in_directory(elsewhere.path())),
              ElementsAre("version brain.Event:2", "graph", "meta_graph", "CHECKPOINT"));
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), elsewhere.file("model.ckpt-0")));
}

TEST_F(CheckpointSaverTest, WithoutTheCreationOfASessionTheFirstRunIsSaved) {  // HC-3
  CheckpointSaverHook hook(every(2));
  begin(hook);
  const std::vector<int64_t> newest{1, 1, 3, 3, 5};
  for (const int64_t step : newest) EXPECT_EQ(train_and_look(hook), step);
}

TEST_F(CheckpointSaverTest, BySecondsItSavesWhenTheyHavePassed) {  // HC-4
  auto by_time = every(1);
  by_time.save_steps.reset();
  by_time.save_secs = Seconds{2};
  CheckpointSaverHook hook(by_time);
  begin(hook);
  const std::vector<std::pair<double, int64_t>> waits_and_newest{{0, 1},   {0.5, 1}, {2, 3},
                                                                 {0.1, 3}, {0.1, 3}, {7.3, 6}};
  for (const auto& [wait, step] : waits_and_newest) {
    clock.advance(Seconds{wait});
    EXPECT_EQ(train_and_look(hook), step);
  }
}

TEST_F(CheckpointSaverTest, BySecondsARunDoesNotReadTheStep) {
  auto by_time = every(1);
  by_time.save_steps.reset();
  by_time.save_secs = Seconds{2};
  CheckpointSaverHook hook(by_time);
  start(hook);
  const int runs = session->runs();
  train(hook);
  EXPECT_EQ(fetched, 0u);
  EXPECT_EQ(session->runs(), runs + 1);
}

TEST_F(CheckpointSaverTest, TheEndSavesStepsThatAreNotSavedYet) {  // HC-5
  CheckpointSaverHook hook(every(10));
  start(hook);
  train(hook);
  EXPECT_EQ(train_and_look(hook), 0);
  hook.end(*session);
  EXPECT_EQ(saved(), 2);
}

TEST_F(CheckpointSaverTest, TheEndSavesNothingTwice) {  // HC-5
  CheckpointSaverHook hook(every(2));
  begin(hook);
  train(hook);
  const LogRecorder log;
  hook.end(*session);
  EXPECT_THAT(log.text(), Not(HasSubstr("Saving")));
}

TEST_F(CheckpointSaverTest, ListenersAreToldOfEverySave) {  // HC-6
  const auto raw = std::make_shared<Counts>();
  auto with = every(2);
  with.listeners = {raw};
  CheckpointSaverHook hook(with);
  begin(hook);
  train(hook);
  train(hook);
  hook.end(*session);
  EXPECT_THAT(raw->all(), ElementsAre(1, 2, 2, 1));
}

TEST_F(CheckpointSaverTest, ListenersOfOneSessionAreToldAlike) {  // HC-6
  const auto one = std::make_shared<Counts>(), another = std::make_shared<Counts>();
  auto with = every(1);
  with.listeners = {one, another};
  CheckpointSaverHook hook(with);
  start(hook);
  train(hook);
  train(hook);
  hook.end(*session);
  EXPECT_THAT(one->all(), ElementsAre(1, 4, 4, 1))
      << "with the look at the end: what they swap in is in the checkpoint";
  EXPECT_EQ(another->all(), one->all());
}

TEST_F(CheckpointSaverTest, AListenerCanStopTheTraining) {  // HC-6
  const auto listener = std::make_shared<Counts>();
  listener->stop_from = 2;
  auto with = every(1);
  with.listeners = {listener};
  CheckpointSaverHook hook(with);
  start(hook);
  EXPECT_FALSE(train(hook));
  EXPECT_TRUE(train(hook));
}

TEST_F(CheckpointSaverTest, AStopThatIsAskedForBeforeTheFirstRunComesAfterIt) {
  const auto listener = std::make_shared<Counts>();
  listener->stop_from = 0;
  auto with = every(100);
  with.listeners = {listener};
  CheckpointSaverHook hook(with);
  start(hook);
  EXPECT_TRUE(train(hook));
}

TEST_F(CheckpointSaverTest, TheGraphComesBeforeTheFirstCheckpoint) {  // HC-7, HC-8
  CheckpointSaverHook hook(every(2));
  set_step(6);
  start(hook);
  EXPECT_THAT(events(), ElementsAre("graph", "meta_graph", "CHECKPOINT 6"));
  EXPECT_THAT(read_file(FileSystem::real(), directory.file("graph.pbtxt")), HasSubstr("name: \"global_step\""));
}

TEST_F(CheckpointSaverTest, TheEventHasThePathWithoutTheStepAndTheTruePrefix) {  // HC-8
  CheckpointSaverHook hook(every(2));
  const LogRecorder log;
  begin(hook);
  train(hook);
  writer->flush();
  const proto::Event event = events_in_directory(directory.path()).back();
  EXPECT_EQ(event.session_log().checkpoint_path(), directory.file("model.ckpt"));
  EXPECT_EQ(event.session_log().msg(), directory.file("model.ckpt-1"));
  EXPECT_THAT(log.text(), HasSubstr("Saving checkpoints for 1 into " + directory.file("model.ckpt") + "."));
}

TEST_F(CheckpointSaverTest, AtTheEndTheEventsAreInTheFile) {
  CheckpointSaverHook hook(every(2));
  set_step(6);
  start(hook);
  hook.end(*session);
  EXPECT_THAT(describe(events_in_directory(directory.path())),
              ElementsAre("version brain.Event:2", "graph", "meta_graph", "CHECKPOINT 6"));
}

TEST_F(CheckpointSaverTest, ASessionThatReplacesALostOneIsSavedAtItsOwnStep) {  // unlike HC-7
  CheckpointSaverHook hook(every(2));
  start(hook);
  for (int i = 0; i < 5; ++i) train(hook);
  set_step(2);
  hook.after_create_session(*session, coord);
  EXPECT_EQ(train_and_look(hook), 2);
  EXPECT_EQ(train_and_look(hook), 4);
  EXPECT_THAT(events(), ElementsAre("graph", "meta_graph", "CHECKPOINT", "CHECKPOINT 2", "CHECKPOINT 4", "CHECKPOINT 2",
                                    "CHECKPOINT 4"));
}

TEST_F(CheckpointSaverTest, ARunMayMakeSeveralSteps) {  // HC-9
  auto several = every(10);
  several.steps_per_run = 5;
  CheckpointSaverHook hook(several);
  begin(hook);
  const std::vector<int64_t> newest{5, 5, 15, 15, 25, 25};
  for (const int64_t step : newest) EXPECT_EQ(train_and_look(hook, 5), step);
  hook.end(*session);
  EXPECT_EQ(saved(), 30);
}

TEST_F(CheckpointSaverTest, ItSavesTheStepThatThereIsWhenItSaves) {  // HC-10
  CheckpointSaverHook hook(every(2));
  start(hook);
  EXPECT_EQ(train_and_look(hook), 0);
  // Another worker makes three steps during a run that begins at step 1.
  EXPECT_EQ(train_and_look(hook, 4), 5);
}

TEST_F(CheckpointSaverTest, ItDoesNotSaveBeforeTheStepIsThere) {  // HC-10
  CheckpointSaverHook hook(every(2));
  start(hook);
  train(hook);
  run(hook, ops::no_op(root));  // should be step 2 after it
  EXPECT_EQ(saved(), 0);
}

TEST_F(CheckpointSaverTest, WhatTheSaverHasRestoredLastIsNotWrittenAgain) {
  const std::string prefix = saver->save(*session, directory.file("model.ckpt"), step);
  const double written = FileSystem::real().modified_at(prefix + ".index");
  CheckpointSaverHook hook(every(2));
  start(hook);
  EXPECT_EQ(FileSystem::real().modified_at(prefix + ".index"), written);
  EXPECT_THAT(events(), ElementsAre("graph", "meta_graph"));
}

// The training thread saves, so that a disk that hangs makes the training hang: after an hour it counts.
TEST_F(CheckpointSaverTest, ASaveIsNoHangForAnHour) {
  struct Looks : CheckpointSaverListener {
    void before_save(Session&, int64_t) override { expected = NoStepsExpected::state(); }
    NoStepsExpected::State expected;
  };
  const auto looks = std::make_shared<Looks>();
  auto with = every(2);
  with.listeners = {looks};
  CheckpointSaverHook hook(with);
  start(hook);
  const Seconds left = looks->expected.until - Clock::real().now();
  EXPECT_TRUE(looks->expected.now);
  EXPECT_LE(left, Seconds{3600});
  EXPECT_GT(left, Seconds{3500});
  EXPECT_FALSE(NoStepsExpected::state().now);
}

// Hooks whose checkpoints go to a disk that becomes full.
class HooksFullDisk : public CheckpointSaverTest {
 protected:
  CheckpointSaverHookOptions on_the_disk(int64_t steps) {
    auto with = every(steps);
    with.saver =
        std::make_shared<Saver>(SaverOptions{.graph = &graph, .name = "save_2", .files = &files, .clock = &clock});
    with.saves = saves;
    with.listeners = {listener};
    return with;
  }
  testing::FaultyFileSystem files;
  std::shared_ptr<SaveAttempts> saves =
      std::make_shared<SaveAttempts>(SaveAttemptsOptions{.max_failed_saves = 3, .clock = &clock});
  std::shared_ptr<Counts> listener = std::make_shared<Counts>();
};

TEST_F(HooksFullDisk, DoesNotEndTheTrainingAndTheSaveIsTriedAgainAfterAWhile) {
  CheckpointSaverHook hook(on_the_disk(4));
  start(hook);
  for (int i = 0; i < 3; ++i) train(hook);
  files.fail_writes_after(0);
  EXPECT_NO_THROW(train(hook));
  EXPECT_EQ(saves->status().consecutive_failures, 1);
  EXPECT_EQ(saved(), 0);
  files.heal();
  EXPECT_EQ(train_and_look(hook), 0) << "not at once";
  clock.advance(Seconds{1});
  EXPECT_EQ(train_and_look(hook), 6) << "and not only when the next one is due";
  EXPECT_EQ(saves->status().consecutive_failures, 0);
  EXPECT_THAT(listener->all(), ElementsAre(1, 3, 2, 0));
  EXPECT_EQ(listener->failed, 1);
}

TEST_F(HooksFullDisk, OrADirectoryInThePlaceOfTheStateFileEndsNoTraining) {
  CheckpointSaverHook hook(on_the_disk(1));
  start(hook);
  files.remove(directory.file("checkpoint"));
  files.make_directories(directory.file("checkpoint"));
  EXPECT_NO_THROW(train(hook));
  EXPECT_EQ(saves->status().consecutive_failures, 1);
  files.remove(directory.file("checkpoint"));
  hook.end(*session);
  EXPECT_EQ(saved(), 1);
}

TEST_F(HooksFullDisk, EndsTheTrainingThatIsToldSo) {
  CheckpointSaverHook hook(on_the_disk(1));
  start(hook);
  files.fail_writes_after(0);
  train(hook);
  train(hook);
  EXPECT_THROW(train(hook), ResourceExhaustedError);
  EXPECT_EQ(listener->failed, 3) << "what it has swapped in is to be out again";
}

TEST_F(HooksFullDisk, EndsTheTrainingByItsErrorWhateverAListenerThrows) {
  class Throws : public CheckpointSaverListener {
    bool after_save(Session&, int64_t) override { throw NotFoundError("the checkpoint"); }
  };
  auto with = on_the_disk(1);
  with.listeners = {std::make_shared<Throws>()};
  with.saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.max_failed_saves = 1, .clock = &clock});
  CheckpointSaverHook hook(with);
  begin(hook);
  files.fail_writes_after(0);
  EXPECT_THROW(train(hook), ResourceExhaustedError);
}

// Whichever call of a listener throws, once.
class HooksThrowingListener : public HooksFullDisk {
 protected:
  class Throwing : public CheckpointSaverListener {
   public:
    void before_save(Session&, int64_t) override { throw_if_it_is("before_save"); }
    bool after_save(Session&, int64_t) override { return throw_if_it_is("after_save"); }
    void save_failed(Session&, int64_t) override { throw_if_it_is("save_failed"); }
    std::string call;

   private:
    bool throw_if_it_is(const std::string& name) {
      if (call != name) return false;
      call.clear();
      throw NotFoundError("what the listener looked for");
    }
  };

  // After the first checkpoint, the step before the next one is due.
  HooksThrowingListener() {
    auto with = on_the_disk(4);
    with.listeners = {throwing};
    hook = std::make_unique<CheckpointSaverHook>(with);
    start(*hook);
    for (int i = 0; i < 3; ++i) train(*hook);
  }

  std::shared_ptr<Throwing> throwing = std::make_shared<Throwing>();
  std::unique_ptr<CheckpointSaverHook> hook;
};

TEST_F(HooksThrowingListener, AfterAFailedSaveThatIsTriedAgainAllTheSame) {
  files.fail_writes_after(0);
  throwing->call = "save_failed";
  EXPECT_THROW(train(*hook), NotFoundError);
  files.heal();
  clock.advance(Seconds{1});
  EXPECT_EQ(train_and_look(*hook), 5);
}

TEST_F(HooksThrowingListener, BeforeASaveThatIsTakenAfterTheNextRun) {
  throwing->call = "before_save";
  EXPECT_THROW(train(*hook), NotFoundError);
  EXPECT_EQ(saved(), 0);
  EXPECT_EQ(train_and_look(*hook), 5);
}

TEST_F(HooksThrowingListener, AfterARetryThatWorkedIsNoReasonForAnother) {
  files.fail_writes_after(0);
  train(*hook);
  files.heal();
  clock.advance(Seconds{1});
  throwing->call = "after_save";
  EXPECT_THROW(train(*hook), NotFoundError);
  EXPECT_EQ(saved(), 5);
  EXPECT_EQ(train_and_look(*hook), 5);
}

TEST_F(HooksFullDisk, OfTheLastSaveIsTriedAgainAtTheEnd) {
  CheckpointSaverHook hook(on_the_disk(1));
  start(hook);
  files.fail_writes_after(0);
  train(hook);
  files.heal();
  hook.end(*session);
  EXPECT_EQ(saved(), 1);
}

TEST_F(HooksFullDisk, IsNotForgottenWhereAnotherHookSavesElsewhere) {
  const testing::TemporaryDirectory elsewhere;
  auto other = every(1);
  other.checkpoint_dir = elsewhere.path();
  other.saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .name = "save_3", .clock = &clock});
  other.saves = saves;
  CheckpointSaverHook hook(on_the_disk(4)), whole(other);
  const auto train_both = [&] {
    train(hook);
    train(whole, 0);
  };
  start(hook);
  start(whole);
  for (int i = 0; i < 3; ++i) train_both();
  files.fail_writes_after(0);
  train_both();
  EXPECT_EQ(saved(), 0);
  EXPECT_EQ(saves->status().consecutive_failures, 0) << "the other one's worked";
  files.heal();
  hook.end(*session);
  EXPECT_EQ(saved(), 4);
}

TEST_F(HooksFullDisk, AtTheEndIsAnErrorAfterSomeAttempts) {
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  auto with = on_the_disk(100);
  with.saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &passing});
  CheckpointSaverHook hook(with);
  start(hook);
  train(hook);
  files.fail_writes_after(0);
  EXPECT_THAT(error_of([&] { hook.end(*session); }), HasSubstr("the last checkpoint could not be saved: "));
  EXPECT_EQ(listener->after, 1) << "the one at the start";
}

}  // namespace
}  // namespace longhaul

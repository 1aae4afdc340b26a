#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Which checkpoints a saver keeps, lists and deletes.
using SaverRetentionTest = SaverFixture;

TEST_F(SaverRetentionTest, OnlyTheLastFewAreKept) {  // SA-70
  options.max_to_keep = 2;
  Saver saver(options);
  const std::string s1 = saver.save(*session, directory.file("s1"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(s1));
  const std::string s2 = saver.save(*session, directory.file("s2"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(s1, s2));
  const std::string s3 = saver.save(*session, directory.file("s3"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(s2, s3));
  for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"})
    EXPECT_FALSE(files.exists(s1 + suffix)) << suffix;
  EXPECT_EQ(state().model_checkpoint_path, s3);
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(s2, s3));
  saver.save(*session, s2);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(s3, s2));
  saver.save(*session, s1);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(s2, s1));
  EXPECT_FALSE(exists(s3));
}

TEST_F(SaverRetentionTest, TheNewestOfBeforeTheLastStepsStaysWhateverTheLimit) {
  options.max_to_keep = 1;
  options.keep_checkpoint_every_n_hours = 0;
  Saver saver(options);
  saver.keep_behind(10);
  const auto kept_after = [&](int64_t step) {
    saver.save(*session, path, step);
    std::vector<int64_t> steps;
    for (const std::string& prefix : saver.last_checkpoints()) steps.push_back(*split_step(prefix).step);
    return steps;
  };
  EXPECT_THAT(kept_after(100), ElementsAre(100));
  EXPECT_THAT(kept_after(104), ElementsAre(100, 104)) << "none is 10 steps old: the oldest becomes it";
  EXPECT_THAT(kept_after(108), ElementsAre(100, 108));
  EXPECT_THAT(kept_after(109), ElementsAre(100, 109));
  EXPECT_THAT(kept_after(117), ElementsAre(100, 109, 117)) << "109 takes its place";
  EXPECT_THAT(kept_after(118), ElementsAre(100, 109, 118));
  EXPECT_THAT(kept_after(119), ElementsAre(109, 118, 119));
  EXPECT_THAT(kept_after(129), ElementsAre(119, 129));
  EXPECT_FALSE(exists(path + "-109"));
}

// Those that a rollback has passed over are listed before what it went back to.
TEST_F(SaverRetentionTest, OneThatWasPassedOverIsNotTheOneToKeep) {
  options.max_to_keep = 2;
  options.keep_checkpoint_every_n_hours = 0;
  Saver before(options), saver(options);
  for (const int64_t step : {90, 80}) before.save(*session, path, step);
  saver.recover_last_checkpoints(before.last_checkpoints());
  saver.keep_behind(10);
  for (const int64_t step : {85, 99, 101}) saver.save(*session, path, step);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path + "-85", path + "-99", path + "-101"));
}

TEST_F(SaverRetentionTest, WithoutALimitAllAreKeptAndNoneIsListed) {  // SA-72
  options.max_to_keep = 0;
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  const std::string s2 = saver.save(*session, path, 2);
  EXPECT_THAT(saver.last_checkpoints(), IsEmpty());
  EXPECT_TRUE(exists(s1));
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(s2));
}

TEST_F(SaverRetentionTest, ALowerLimitIsReachedStepByStep) {  // unlike SA-73
  options.keep_checkpoint_every_n_hours = 0;
  Saver generous(options);
  for (int n = 1; n <= 5; ++n) generous.save(*session, path, n);
  options.max_to_keep = 2;
  Saver strict(options);
  strict.recover_last_checkpoints(generous.last_checkpoints());
  const LogRecorder log;
  strict.save(*session, path, 6);
  EXPECT_THAT(strict.last_checkpoints(), ElementsAre(path + "-3", path + "-4", path + "-5", path + "-6"));
  EXPECT_THAT(log.text(), HasSubstr("there are 2 checkpoints more than max_to_keep = 2"));
  strict.save(*session, path, 7);
  EXPECT_THAT(strict.last_checkpoints(), ElementsAre(path + "-5", path + "-6", path + "-7"));
  strict.save(*session, path, 8);
  EXPECT_THAT(strict.last_checkpoints(), ElementsAre(path + "-7", path + "-8"));
  for (int n = 1; n <= 6; ++n) EXPECT_FALSE(exists(path + "-" + std::to_string(n))) << n;
}

TEST_F(SaverRetentionTest, ADeletionBeginsWithTheIndexAndEndsWithTheMetaGraph) {  // unlike SA-77
  options.max_to_keep = 1;
  Saver saver(options);
  saver.save(*session, path, 1);
  const size_t before = files.operations().size();
  saver.save(*session, path, 2);
  const auto operations = files.operations();
  std::vector<std::string> removed;
  for (size_t i = before; i < operations.size(); ++i) {
    const std::string name = operations[i].substr(operations[i].rfind(' ') + 1);
    const bool is_aside = name.find(".aside") != name.npos;  // there is none
    if (operations[i].starts_with("remove model-1.") && !is_aside) removed.push_back(name);
  }
  EXPECT_THAT(removed, ElementsAre("model-1.index", "model-1.data-00000-of-00001", "model-1.meta"));
}

TEST_F(SaverRetentionTest, AFailedDeletionIsTriedAgain) {  // unlike SA-77
  options.max_to_keep = 1;
  Saver saver(options);
  saver.save(*session, path, 1);
  const size_t before = files.operations().size();
  saver.save(*session, path, 2);
  saver.save(*session, path, 3);
  const size_t per_save = (files.operations().size() - before) / 2;
  const LogRecorder log;
  const auto operations = files.operations();
  size_t first_removal = 0;  // of a save, counted from its start
  for (size_t i = before; i < before + per_save; ++i) {
    if (operations[i] == "remove model-1.index") first_removal = i - before;
  }
  files.fail_operation(static_cast<int>(first_removal));
  saver.save(*session, path, 4);
  EXPECT_TRUE(exists(path + "-3"));
  EXPECT_THAT(log.text(), HasSubstr("model-3 could not be deleted"));
  saver.save(*session, path, 5);
  EXPECT_FALSE(exists(path + "-3"));
  EXPECT_FALSE(exists(path + "-4"));
}

// One checkpoint cannot be deleted, as on a disk that is not always there.
class StubbornFileSystem : public testing::FaultyFileSystem {
 public:
  void remove(const std::string& path) override {
    if (base_name(path) == stubborn) throw UnavailableError("remove " + path + ": it does not go away");
    testing::FaultyFileSystem::remove(path);
  }
  std::string stubborn;
};

TEST_F(SaverRetentionTest, AFailedDeletionIsTriedAgainAfterARestart) {
  StubbornFileSystem disk;
  options.files = &disk;
  options.max_to_keep = 1;
  Saver(options).save(*session, path, 1);
  {
    Saver saver(options);
    saver.recover_last_checkpoints(state());
    disk.stubborn = "model-1.index";
    saver.save(*session, path, 2);
    EXPECT_TRUE(exists(path + "-1"));
  }
  disk.stubborn.clear();
  Saver saver(options);
  saver.recover_last_checkpoints(state());
  saver.save(*session, path, 3);
  EXPECT_FALSE(exists(path + "-1"));
  EXPECT_FALSE(exists(path + "-2"));
}

TEST_F(SaverRetentionTest, WhatIsListedAnewIsNotDeletedForAnEarlierFailure) {
  StubbornFileSystem disk;
  options.files = &disk;
  options.max_to_keep = 2;
  Saver saver(options);
  disk.stubborn = "model-1.index";
  for (int n = 1; n <= 3; ++n) saver.save(*session, path, n);
  disk.stubborn.clear();
  saver.set_last_checkpoints({path + "-1"});
  saver.save(*session, path, 4);
  EXPECT_TRUE(exists(path + "-1"));
}

TEST_F(SaverRetentionTest, WithoutALimitARestartedRunGoesOnSaving) {
  Saver(options).save(*session, path, 1);
  options.max_to_keep = 0;
  Saver saver(options);
  saver.recover_last_checkpoints(state());
  for (int n = 2; n <= 3; ++n) saver.save(*session, path, n);
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(path + "-3"));
  for (int n = 1; n <= 3; ++n) EXPECT_TRUE(exists(path + "-" + std::to_string(n))) << n;
}

TEST_F(SaverRetentionTest, OneInNHoursIsKeptForGood) {  // SA-74
  options.max_to_keep = 2;
  options.keep_checkpoint_every_n_hours = 1;
  Saver saver(options);
  clock.advance(Seconds{3600});
  const std::string s1 = saver.save(*session, path, 1);
  for (int n = 2; n <= 4; ++n) saver.save(*session, path, n);
  EXPECT_TRUE(exists(s1));
  EXPECT_FALSE(exists(path + "-2"));
}

TEST_F(SaverRetentionTest, WhatWasKeptLastSurvivesARestart) {  // unlike SA-75
  options.max_to_keep = 1;
  options.keep_checkpoint_every_n_hours = 1;
  {
    Saver saver(options);
    clock.advance(Seconds{1800});
    saver.save(*session, path, 1);
  }
  clock.advance(Seconds{1800});
  Saver saver(options);
  saver.recover_last_checkpoints(state());
  saver.save(*session, path, 2);
  saver.save(*session, path, 3);
  EXPECT_TRUE(exists(path + "-2"));  // an hour after the first saver began, not after the second
}

TEST_F(SaverRetentionTest, RecoveringForgetsWhatIsGone) {  // SA-76
  Saver saver(options);
  const std::string s2 = saver.save(*session, path, 2);
  const std::string s3 = saver.save(*session, path, 3);
  Saver again(options);
  again.recover_last_checkpoints({path + "-1", s2, s3});
  EXPECT_THAT(again.last_checkpoints(), ElementsAre(s2, s3));
  again.save(*session, path, 4);
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(s2, s3, path + "-4"));
}

TEST_F(SaverRetentionTest, ASecondSaverManagesItsOwnList) {  // SA-71
  options.max_to_keep = 2;
  Saver first(options);
  const std::string s1 = first.save(*session, path, 1);
  const std::string s2 = first.save(*session, path, 2);
  Saver second(options), third(options);
  second.set_last_checkpoints({s1, s2});
  first.save(*session, path, 3);
  second.save(*session, path, 4);  // s1 is gone already
  EXPECT_THAT(second.last_checkpoints(), ElementsAre(s2, path + "-4"));
  third.save(*session, path, 5);
  EXPECT_THAT(third.last_checkpoints(), ElementsAre(path + "-5"));
  EXPECT_TRUE(exists(s2));
}

TEST_F(SaverRetentionTest, RelativePathsLetTheDirectoryMove) {  // SA-78
  options.save_relative_paths = true;
  const std::string old_home = directory.file("old"), new_home = directory.file("new");
  Saver(options).save(*session, old_home + "/model", 1);
  files.rename(old_home, new_home);
  EXPECT_EQ(read_checkpoint_state(files, new_home).state.model_checkpoint_path, new_home + "/model-1");
}

}  // namespace
}  // namespace longhaul

#include <unistd.h>

#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A saver, and those who read its checkpoints meanwhile.
class SaverReadersTest : public SaverFixture {
 protected:
  size_t notes() { return names_in(files, directory.file(kReadersFolder)).size(); }
};

TEST_F(SaverReadersTest, ACheckpointThatIsReadIsDeletedAfterwards) {
  options.max_to_keep = 1;
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  auto pin = std::make_unique<CheckpointPin>(s1);
  const LogRecorder log;
  saver.save(*session, path, 2);
  saver.save(*session, path, 3);
  EXPECT_TRUE(exists(s1));
  EXPECT_FALSE(exists(path + "-2"));
  EXPECT_THAT(log.text(), HasSubstr("model-1 is deleted later, because it is being read"));
  pin.reset();
  saver.save(*session, path, 4);
  EXPECT_FALSE(exists(s1));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path + "-4"));
}

TEST_F(SaverReadersTest, ARestartDeletesWhatWasReadAtItsEnd) {
  options.max_to_keep = 1;
  {
    Saver saver(options);
    const CheckpointPin pin(saver.save(*session, path, 1));
    saver.save(*session, path, 2);
  }
  EXPECT_TRUE(exists(path + "-1"));
  Saver next(options);
  next.recover_last_checkpoints(state());
  next.save(*session, path, 3);
  EXPECT_FALSE(exists(path + "-1"));
  EXPECT_FALSE(exists(path + "-2"));
}

TEST_F(SaverReadersTest, AReaderThatComesBetweenTheAnnouncementAndTheDeletionGoesWithoutIt) {
  options.max_to_keep = 1;
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  CheckpointState announced = state();
  announced.paths_marked_for_deletion = {s1};
  write_checkpoint_state(files, directory.path(), announced);
  EXPECT_THROW(CheckpointPin{s1}, NotFoundError);
}

TEST_F(SaverReadersTest, AFullDiskTakesNoCheckpointThatIsRead) {
  options.max_to_keep = 5;
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  const std::string s2 = saver.save(*session, path, 2);
  saver.save(*session, path, 3);
  const CheckpointPin pin(s1);
  files.fail_writes_after(0);
  EXPECT_THROW(saver.save(*session, path, 4), ResourceExhaustedError);
  files.heal();
  EXPECT_TRUE(exists(s1));
  EXPECT_FALSE(exists(s2));
}

TEST_F(SaverReadersTest, AnEvaluatorsMetricDecidesWhichCheckpointIsTheBest) {
  options.max_to_keep = 1;
  options.best = {.top_k = 1};
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  write_checkpoint_metric(s1, 0.25);
  for (int n = 2; n <= 4; ++n) {
    const std::string newest = saver.save(*session, path, n);
    EXPECT_THAT(saver.best_checkpoints(), ElementsAre(s1));
    write_checkpoint_metric(newest, 0.5);
  }
  EXPECT_TRUE(exists(s1));
  EXPECT_EQ(notes(), 1u);                       // the others are in the retention file
  write_checkpoint_metric(path + "-4", 0.125);  // another evaluator, and a better metric
  saver.save(*session, path, 5);
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(path + "-4"));
  EXPECT_FALSE(exists(s1));
  EXPECT_EQ(notes(), 0u);
}

TEST_F(SaverReadersTest, AMetricThatComesWhileTheCheckpointIsPinnedIsInTime) {
  options.max_to_keep = 1;
  options.best = {.top_k = 1};
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  {
    const CheckpointPin pin(s1);
    saver.save(*session, path, 2);
    saver.save(*session, path, 3);
    write_checkpoint_metric(s1, 0.25);
  }
  saver.save(*session, path, 4);
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(s1));
  EXPECT_TRUE(exists(s1));
  saver.save(*session, path, 5);
  EXPECT_TRUE(exists(s1));
}

TEST_F(SaverReadersTest, MetricsOfTheLastCheckpointsAreThereWithoutAnotherSave) {
  options.best = {.top_k = 2};
  {
    Saver saver(options);
    saver.save(*session, path, 1);
    saver.save(*session, path, 2);
  }
  write_checkpoint_metric(path + "-1", 0.5);
  write_checkpoint_metric(path + "-2", 0.25);
  for (int i = 0; i < 2; ++i) {
    Saver reader(options);
    reader.recover_last_checkpoints(state());
    EXPECT_THAT(reader.best_checkpoints(), ElementsAre(path + "-2", path + "-1"));
  }
}

TEST_F(SaverReadersTest, AMetricIsRecordedBeforeItsNoteIsRemoved) {
  options.best = {.top_k = 1};
  Saver first(options);
  const std::string s1 = first.save(*session, path, 1);
  first.save(*session, path, 2);
  write_checkpoint_metric(s1, 0.25);
  const size_t begin = files.operations().size();
  first.save(*session, path, 3);
  const std::vector<std::string> operations = files.operations();
  ptrdiff_t recorded = -1, removed = -1;
  for (size_t i = begin; i < operations.size(); ++i) {
    if (operations[i].starts_with("rename checkpoint.retention.") && recorded < 0) recorded = static_cast<ptrdiff_t>(i);
    if (operations[i].starts_with("remove metric.")) removed = static_cast<ptrdiff_t>(i);
  }
  ASSERT_GE(recorded, 0);
  EXPECT_LT(recorded, removed);
}

TEST_F(SaverReadersTest, AKillAtAnyMomentKeepsTheMetric) {
  options.best = {.top_k = 1};
  for (int n = 0; n < 60; ++n) {
    const std::string at = directory.file("run" + std::to_string(n)) + "/model";
    {
      Saver first(options);
      const std::string s1 = first.save(*session, at, 1);
      write_checkpoint_metric(s1, 0.25);
      files.fail_operation(n, testing::FaultyFileSystem::Fault::kForGood);
      try {
        first.save(*session, at, 2);
      } catch (const Error&) {
      }
      files.heal();
    }
    Saver next(options);
    next.recover_last_checkpoints(read_checkpoint_state(files, directory_name(at)).state);
    EXPECT_THAT(next.best_checkpoints(), ElementsAre(at + "-1")) << n;
  }
}

TEST_F(SaverReadersTest, WithoutTheOptionAMetricKeepsNothingAndIsToldOf) {
  options.max_to_keep = 1;
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  write_checkpoint_metric(s1, 0.25);
  const LogRecorder log;
  saver.save(*session, path, 2);
  EXPECT_FALSE(exists(s1));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("SaverOptions::best has top_k = 0"));
  const LogRecorder later;
  write_checkpoint_metric(path + "-2", 0.25);
  saver.save(*session, path, 3);
  EXPECT_THAT(later.text(LogLevel::kWarning), Not(HasSubstr("top_k")));
}

TEST_F(SaverReadersTest, AMetricOfADeletedCheckpointIsToldOf) {
  options.max_to_keep = 1;
  options.best = {.top_k = 1};
  Saver saver(options);
  const std::string s1 = saver.save(*session, path, 1);
  saver.save(*session, path, 2, {.metric = 1.0});
  files.make_directories(directory.file(kReadersFolder));
  write_file_atomically(
      files, directory.file(std::string(kReadersFolder) + "/metric." + std::string(32, 'a')),
      format_reader_note({.checkpoint = "model-1", .metric = 0.5, .reader = {.token = std::string(32, 'a')}}));
  const LogRecorder log;
  saver.save(*session, path, 3);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("the metric 0.5 of checkpoint"));
  EXPECT_EQ(notes(), 0u);
}

TEST_F(SaverReadersTest, NotesThatAreNoneChangeNothing) {
  options.max_to_keep = 1;
  Saver saver(options);
  saver.save(*session, path, 1);
  files.make_directories(directory.file(kReadersFolder));
  for (const char* text :
       {"", "longhaul reader note 1\ncheckpoint ../model-1\nis read\n", "pinned checkpoint model-1"}) {
    write_file_atomically(files, directory.file(std::string(kReadersFolder) + "/pin." + std::string(32, 'a')), text);
    saver.save(*session, path, 2);
    saver.save(*session, path, 3);
    EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path + "-3"));
    EXPECT_FALSE(exists(path + "-2"));
  }
}

}  // namespace
}  // namespace longhaul

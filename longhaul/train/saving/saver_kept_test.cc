#include <algorithm>
#include <filesystem>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Checkpoints that stay beside the newest: pinned ones, and the best by a metric.
class KeptCheckpointsTest : public SaverFixture {
 protected:
  KeptCheckpointsTest() {
    options.max_to_keep = 2;
    options.keep_checkpoint_every_n_hours = 0;
  }
  std::string at(int n) const { return path + "-" + std::to_string(n); }
  void save(Saver& saver, int n, std::optional<double> metric = std::nullopt) {
    saver.save(*session, path, n, {.write_meta_graph = false, .metric = metric});
  }
  std::vector<int> there() {
    std::vector<int> steps;
    for (int n = 0; n < 20; ++n) {
      if (exists(at(n))) steps.push_back(n);
    }
    return steps;
  }
  // As after a restart of the process.
  std::unique_ptr<Saver> restarted() {
    auto saver = std::make_unique<Saver>(options);
    saver->recover_last_checkpoints(state());
    return saver;
  }
};

TEST_F(KeptCheckpointsTest, APinnedOneStaysUntilItIsUnpinned) {
  Saver saver(options);
  save(saver, 1);
  saver.pin(at(1));
  for (int n = 2; n <= 4; ++n) save(saver, n);
  EXPECT_THAT(there(), ElementsAre(1, 3, 4));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at(3), at(4)));
  EXPECT_THAT(saver.pinned_checkpoints(), ElementsAre(at(1)));
  saver.unpin(at(1));
  EXPECT_THAT(saver.pinned_checkpoints(), IsEmpty());
  save(saver, 5);
  EXPECT_THAT(there(), ElementsAre(4, 5));
}

TEST_F(KeptCheckpointsTest, OneThatGetsItsMetricAfterItWasSavedHasNotChanged) {
  options.best.top_k = 1;
  for (const bool skip_if_saved : {false, true}) {
    const LogRecorder log;
    Saver saver(options);
    saver.save(*session, path, step);
    saver.save(*session, path, step, {.metric = 0.5, .skip_if_saved = skip_if_saved});
    EXPECT_THAT(saver.best_checkpoints(), ElementsAre(at(0)));
    EXPECT_THAT(log.text(), Not(HasSubstr("saved again")));
    EXPECT_THAT(log.text(), Not(HasSubstr("overwritten")));
  }
}

TEST_F(KeptCheckpointsTest, ADeletionThatAKillCutOffIsMadeAfterTheRestart) {
  Saver saver(options);
  for (int n = 1; n <= 2; ++n) save(saver, n);
  const size_t before = files.operations().size();
  save(saver, 3);
  const auto operations = files.operations();
  const auto deletion =
      std::find(operations.begin() + static_cast<ptrdiff_t>(before), operations.end(), "remove model-1.index");
  ASSERT_NE(deletion, operations.end());
  files.fail_operation(static_cast<int>(deletion - operations.begin()) - static_cast<int>(before),
                       testing::FaultyFileSystem::Fault::kForGood);
  save(saver, 4);
  files.heal();
  EXPECT_THAT(there(), ElementsAre(2, 3, 4));
  save(*restarted(), 5);
  EXPECT_THAT(there(), ElementsAre(4, 5));
}

TEST_F(KeptCheckpointsTest, APinAndItsEndSurviveRestarts) {
  {
    Saver saver(options);
    save(saver, 1);
    saver.pin("file://" + at(1));
    save(saver, 2);
  }
  for (int n = 3; n <= 6; ++n) save(*restarted(), n);
  EXPECT_THAT(there(), ElementsAre(1, 5, 6));
  const auto saver = restarted();
  EXPECT_THAT(saver->pinned_checkpoints(), ElementsAre(at(1)));
  saver->unpin(at(1));
  save(*restarted(), 7);
  EXPECT_THAT(there(), ElementsAre(6, 7));
}

TEST_F(KeptCheckpointsTest, AnUnpinnedOneIsDeletedAfterARestartToo) {
  {
    Saver saver(options);
    save(saver, 1);
    saver.pin(at(1));
    for (int n = 2; n <= 3; ++n) save(saver, n);
  }
  const auto saver = restarted();
  saver->unpin(at(1));
  save(*saver, 4);
  EXPECT_THAT(there(), ElementsAre(3, 4));
}

TEST_F(KeptCheckpointsTest, ASaverThatKnowsNothingRespectsPins) {
  Saver first(options);
  save(first, 1);
  first.pin(at(1));
  Saver second(options);
  for (int n = 1; n <= 4; ++n) save(second, n);
  EXPECT_THAT(there(), ElementsAre(1, 3, 4));
}

TEST_F(KeptCheckpointsTest, APrefixIsTheSameHoweverItIsSpelled) {
  Saver saver(options);
  save(saver, 1);
  saver.pin(directory.file("./model-1"));
  path = std::filesystem::relative(path).string();
  for (int n = 2; n <= 4; ++n) save(saver, n);
  EXPECT_THAT(there(), ElementsAre(1, 3, 4));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at(3), at(4)));
  EXPECT_THAT(saver.pinned_checkpoints(), ElementsAre(at(1)));
}

TEST_F(KeptCheckpointsTest, AListThatNamesACheckpointTwiceKeepsIt) {
  Saver saver(options);
  save(saver, 1);
  saver.set_last_checkpoints({at(1), directory.file("./model-1")});
  save(saver, 2);
  EXPECT_THAT(there(), ElementsAre(1, 2));
}

TEST_F(KeptCheckpointsTest, TheDirectoryMayBeSpelledOtherwiseAfterARestart) {
  options.best.top_k = 1;
  {
    Saver saver(options);
    save(saver, 1);
    saver.pin(at(1));
    save(saver, 2, 0.1);
  }
  path = std::filesystem::relative(path).string();
  Saver saver(options);
  saver.recover_last_checkpoints(read_checkpoint_state(files, directory_name(path)).state);
  for (int n = 3; n <= 5; ++n) save(saver, n, 0.2);
  EXPECT_THAT(there(), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at(4), at(5)));
}

TEST_F(KeptCheckpointsTest, PinsOfAnotherSaverCountWhileTrainingRuns) {
  options.best.top_k = 1;
  Saver saver(options);
  save(saver, 1);
  save(saver, 2, 0.1);
  options.best.top_k = 0;
  Saver other(options);
  other.pin(at(1));
  for (int n = 3; n <= 5; ++n) save(saver, n);
  EXPECT_THAT(there(), ElementsAre(1, 2, 4, 5)) << "1 is pinned by the other, and 2 is the best of the first";
  EXPECT_THAT(saver.pinned_checkpoints(), ElementsAre(at(1)));
  other.unpin(at(1));
  save(saver, 6);
  EXPECT_THAT(there(), ElementsAre(2, 5, 6));
}

TEST_F(KeptCheckpointsTest, ADamagedFileOfPinsUnpinsNothing) {
  const LogRecorder log;
  Saver saver(options);
  save(saver, 1);
  saver.pin(at(1));
  write_file_atomically(files, retention_path(directory.path()), "what?");
  for (int n = 2; n <= 4; ++n) save(saver, n);
  EXPECT_THAT(there(), ElementsAre(1, 3, 4));
  EXPECT_THAT(log.text(), HasSubstr("cannot tell which checkpoints are pinned or best"));
}

TEST_F(KeptCheckpointsTest, WhatIsListedAnewHasNotFallenOut) {
  Saver saver(options);
  save(saver, 1);
  saver.pin(at(1));
  for (int n = 2; n <= 3; ++n) save(saver, n);
  saver.set_last_checkpoints({at(1)});
  saver.unpin(at(1));
  save(saver, 4);
  EXPECT_TRUE(exists(at(1)));
}

TEST_F(KeptCheckpointsTest, OnlyWhatExistsCanBePinned) {
  Saver saver(options);
  EXPECT_THROW(saver.pin(at(1)), NotFoundError);
  EXPECT_FALSE(files.exists(retention_path(directory.path())));
}

TEST_F(KeptCheckpointsTest, TheBestStayBesideTheNewest) {
  options.best.top_k = 2;
  Saver saver(options);
  const double losses[] = {0.5, 0.2, 0.9, 0.3, 0.8, 0.7};
  for (int n = 1; n <= 6; ++n) save(saver, n, losses[n - 1]);
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(at(2), at(4)));
  EXPECT_THAT(there(), ElementsAre(2, 4, 5, 6));
  save(saver, 7, 0.1);
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(at(7), at(2)));
  EXPECT_THAT(there(), ElementsAre(2, 6, 7)) << "4 is not among the best any more, nor among the newest";
}

TEST_F(KeptCheckpointsTest, HigherCanBeBetterAndATieGoesToTheLater) {
  options.best.top_k = 1;
  options.best.mode = MetricMode::kMax;
  Saver saver(options);
  save(saver, 1, 0.9);
  save(saver, 2, 0.9);
  for (int n = 3; n <= 5; ++n) save(saver, n, 0.1);
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(at(2)));
  EXPECT_THAT(there(), ElementsAre(2, 4, 5));
}

TEST_F(KeptCheckpointsTest, TheBestSurviveRestarts) {
  options.best.top_k = 1;
  const double losses[] = {0.5, 0.2, 0.9, 0.3, 0.8, 0.7};
  for (int n = 1; n <= 6; ++n) save(*restarted(), n, losses[n - 1]);
  EXPECT_THAT(there(), ElementsAre(2, 5, 6));
  save(*restarted(), 7, 0.1);
  EXPECT_THAT(there(), ElementsAre(6, 7));
}

TEST_F(KeptCheckpointsTest, FewerBestAreReachedAfterARestart) {
  options.best.top_k = 3;
  {
    Saver saver(options);
    for (int n = 1; n <= 6; ++n) save(saver, n, n);
    EXPECT_THAT(there(), ElementsAre(1, 2, 3, 5, 6));
  }
  options.best.top_k = 1;
  save(*restarted(), 7, 7);
  EXPECT_THAT(there(), ElementsAre(1, 6, 7));
}

TEST_F(KeptCheckpointsTest, WithoutAMetricItIsNotAmongTheBest) {
  options.best.top_k = 5;
  Saver saver(options);
  save(saver, 1);
  save(saver, 2, std::numeric_limits<double>::quiet_NaN());
  for (int n = 3; n <= 5; ++n) save(saver, n);
  EXPECT_THAT(saver.best_checkpoints(), IsEmpty());
  EXPECT_THAT(there(), ElementsAre(4, 5));
  EXPECT_FALSE(files.exists(retention_path(directory.path()))) << "no such file where nobody needs it";
}

TEST_F(KeptCheckpointsTest, TheStateFileStaysWhatTensorFlowReads) {
  options.best.top_k = 1;
  Saver saver(options);
  save(saver, 1, 0.5);
  saver.pin(at(1));
  const std::string text = read_file(files, directory.file("checkpoint"));
  EXPECT_EQ(text.find("metric"), std::string::npos);
  EXPECT_EQ(text.find("pinned"), std::string::npos);
}

TEST_F(KeptCheckpointsTest, MetricsAndPinsAreWrittenBeforeAnythingIsDeleted) {
  options.best.top_k = 1;
  options.max_to_keep = 1;
  Saver saver(options);
  save(saver, 1, 1);
  const size_t before = files.operations().size();
  save(saver, 2, 0.5);
  std::vector<std::string> order;
  const auto operations = files.operations();
  for (size_t i = before; i < operations.size(); ++i) {
    const std::string name = operations[i].substr(operations[i].rfind(' ') + 1);
    if (operations[i].starts_with("rename") && name.find("data") == name.npos) order.push_back(name);
    if (operations[i] == "remove model-1.index") order.push_back("removal");
  }
  EXPECT_THAT(order, ElementsAre("model-2.index", "checkpoint.retention", "checkpoint", "removal"));
}

TEST_F(KeptCheckpointsTest, AMetricIsForCheckpointsThatAreManaged) {
  Saver saver(options);
  EXPECT_THROW(saver.save(*session, path, 1, {.write_state = false, .metric = 1}), InvalidArgumentError);
}

// A crash between the two files: the state still lists what the other file calls fallen out.
TEST_F(KeptCheckpointsTest, WhatIsListedIsNotDeletedForLosingItsPin) {
  options.max_to_keep = 3;
  {
    Saver saver(options);
    for (int n = 1; n <= 2; ++n) save(saver, n);
  }
  write_retention(files, directory.path(), {{at(1), {.pinned = true, .fallen_out = true}}});
  const auto saver = restarted();
  saver->unpin(at(1));
  save(*saver, 3);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3));
}

TEST_F(KeptCheckpointsTest, WhatIsKeptForGoodIsNeitherPinnedNorBest) {
  options.max_to_keep = 1;
  options.keep_checkpoint_every_n_hours = 1;
  options.best.top_k = 1;
  Saver saver(options);
  clock.advance(Seconds{3600});
  save(saver, 1, 9);
  save(saver, 2, 1);
  save(saver, 3, 2);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3));
  save(saver, 4, 0.5);
  save(saver, 5, 3);
  EXPECT_THAT(there(), ElementsAre(1, 4, 5));
}

TEST_F(KeptCheckpointsTest, OneWithANameOfItsOwnIsNotDeletedWithoutAWord) {
  const LogRecorder log;
  Saver saver(options);
  saver.save(*session, path + "-before-surgery");
  for (int n = 1; n <= 4; ++n) save(saver, n);
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("-before-surgery is deleted: newer ones have displaced it"));
  EXPECT_THAT(log.text(LogLevel::kInfo), Not(HasSubstr(at(1) + " is deleted"))) << "which goes without saying";
}

TEST_F(KeptCheckpointsTest, TheBestCannotBeKeptWithoutAMetricWhichIsSaidOnce) {
  options.best.top_k = 1;
  const LogRecorder log;
  Saver saver(options);
  for (int n = 1; n <= 2; ++n) save(saver, n);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
  for (int n = 3; n <= 5; ++n) save(saver, n);
  const std::string text = log.text(LogLevel::kWarning);
  EXPECT_THAT(text, HasSubstr("no checkpoint has one, and " + at(1) + " is deleted: pass SaveOptions::metric"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace longhaul

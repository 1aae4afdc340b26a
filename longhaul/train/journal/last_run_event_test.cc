#include "longhaul/train/journal/last_run_event.h"

#include <filesystem>
#include <fstream>

#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

class LastRunEventTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunJournal> begin() {
    auto journal = std::make_unique<RunJournal>(directory_.path());
    journal->begin();
    return journal;
  }
  std::optional<RunEvent> last() { return last_run_event(FileSystem::real(), directory_.path()); }
  bool has_ended() { return last() && is_final_end(*last()); }

  testing::TemporaryDirectory directory_;
};

TEST_F(LastRunEventTest, AnEndIsFinalUnlessTheRunIsToBeStartedAgain) {
  EXPECT_FALSE(last().has_value());
  begin();  // and is killed
  ASSERT_TRUE(last().has_value());
  EXPECT_EQ(last()->kind, RunEvent::Kind::kBegan);
  EXPECT_FALSE(has_ended());
  begin()->ended(std::make_exception_ptr(InternalError("diverged")));
  EXPECT_FALSE(has_ended());
  begin()->ended(nullptr, /*is_disturbed=*/false, /*unsaved=*/0, /*is_preempted=*/true);
  EXPECT_EQ(last()->kind, RunEvent::Kind::kEnded);
  EXPECT_FALSE(has_ended());
  begin()->ended();
  EXPECT_TRUE(has_ended());
  const auto next = begin();
  EXPECT_FALSE(has_ended());
}

TEST_F(LastRunEventTest, AJournalThatCannotBeReadTellsNothing) {
  const std::string path = journal_path(directory_.path());
  std::ofstream(path) << "nonsense\nmore\n";
  EXPECT_FALSE(last().has_value());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(last().has_value());
}

}  // namespace
}  // namespace longhaul

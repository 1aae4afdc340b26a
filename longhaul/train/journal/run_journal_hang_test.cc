// A logdir on a file system that hangs.
#include <atomic>
#include <future>
#include <thread>

#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// On which appends hang when a test wants it.
class HangingFiles : public testing::FaultyFileSystem {
 public:
  void hang(bool on) {
    MutexLock lock(mutex_);
    hangs_ = on;
    changed_.notify_all();
  }
  void wait_until_somebody_hangs() {
    MutexLock lock(mutex_);
    while (!is_met_) changed_.wait_for(mutex_, Seconds{1});
  }
  void heal_at_next_creation() { heals_ = true; }
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    if (heals_.exchange(false)) heal();
    return std::make_unique<File>(*this, FaultyFileSystem::create(path, if_exists));
  }

 private:
  struct File : WritableFile {
    File(HangingFiles& files, std::unique_ptr<WritableFile> inner) : files_(files), inner_(std::move(inner)) {}
    void append(std::string_view data) override {
      files_.meet();
      inner_->append(data);
    }
    void flush() override { inner_->flush(); }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

    HangingFiles& files_;
    const std::unique_ptr<WritableFile> inner_;
  };
  void meet() {
    MutexLock lock(mutex_);
    is_met_ = hangs_;
    changed_.notify_all();
    while (hangs_) changed_.wait_for(mutex_, Seconds{1});
  }

  std::atomic<bool> heals_{false};
  Mutex mutex_;
  CondVar changed_;
  bool hangs_ GUARDED_BY(mutex_) = false, is_met_ GUARDED_BY(mutex_) = false;
};

TEST(RunJournalHang, AFailedSaveOfWhichTheReplacedFileKnowsCountsOnce) {
  const testing::TemporaryDirectory directory;
  HangingFiles hanging;
  testing::FakeClock clock;
  RunJournal journal(directory.path(), {.files = &hanging, .clock = &clock});
  journal.begin();
  journal.training(1);
  hanging.hang(true);
  std::thread marking([&] { journal.mark(7); });
  hanging.wait_until_somebody_hangs();
  std::thread waiting([&] { journal.mark(8); });
  while (journal.history().sums().step != 8) std::this_thread::yield();
  journal.save_failed(1, 8, "No space left");
  hanging.fail_writes_after(0);  // the line of the first mark, and not the sums that follow from it
  hanging.heal_at_next_creation();
  hanging.hang(false);
  marking.join();
  waiting.join();
  clock.advance(Seconds{5});
  journal.mark(9);
  const std::string text = read_file(FileSystem::real(), journal_path(directory.path()));
  const FailedSaves saves = parse_run_journal(text).history.runs().back().failed_saves;
  EXPECT_EQ(saves.in_all, 1);
  EXPECT_EQ(saves.in_a_row, 1);
  EXPECT_EQ(saves, journal.history().runs().back().failed_saves);
}

TEST(RunJournalHang, HoldsUpNobodyForLongButWhoWrites) {
  const testing::TemporaryDirectory directory;
  HangingFiles hanging;
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  RunJournal journal(directory.path(), {.files = &hanging, .clock = &passing});
  journal.begin();
  journal.training(1);
  hanging.hang(true);
  std::thread marking([&] { journal.mark(7); });
  hanging.wait_until_somebody_hangs();
  const LogRecorder log;
  auto ending = std::async(std::launch::async, [&] {
    journal.saved(directory.file("model.ckpt-8"), 8, {});
    journal.ended();
  });
  EXPECT_EQ(ending.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  hanging.hang(false);
  marking.join();
  ending.wait();
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("its file system seems to hang"));
  const std::string text = read_file(FileSystem::real(), journal_path(directory.path()));
  const RunHistory on_disk = parse_run_journal(text).history;
  EXPECT_EQ(on_disk.sums().step, 8);
  EXPECT_EQ(on_disk.sums().phase, RunHistory::Phase::kStopped);
}

}  // namespace
}  // namespace longhaul

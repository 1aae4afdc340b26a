#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include "longhaul/io/lock/directory_lock_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DirectoryLockTest, AFlockIsRespectedWithoutARecordAndWithThatOfADeadProcess) {
  const FileLock::Attempt other = files_.try_lock(lock_file());
  EXPECT_THAT(refusal(), HasSubstr("has not written its owner record yet"));
  leave_record(of_a_dead_process());
  EXPECT_THAT(refusal(), HasSubstr("a child process of it still has " + lock_file() + " open"));
}

TEST_F(DirectoryLockTest, TheFlockOfAMachineThatDiedIsNoObstacle) {
  const FileLock::Attempt other = files_.try_lock(lock_file());
  leave_record(stranger().process, Seconds{20});
  EXPECT_THAT(refusal(), HasSubstr("host far-away, process 42"));
  leave_record(stranger().process, Seconds{61});
  const auto lock = take();
  EXPECT_FALSE(lock->owner().has_flock);
  EXPECT_NO_THROW(lock->check());
  EXPECT_THAT(log_, HasSubstr("is still locked by a dead machine"));
  EXPECT_THAT(refusal(), HasSubstr("It is this process"));
}

TEST_F(DirectoryLockTest, AFileThatCannotBeWrittenLeavesTheDirectoryFree) {
  take();
  const int operations = static_cast<int>(files_.operations().size());
  for (int n = 0; n < operations - 1; ++n) {  // the last one removes the record
    files_.fail_operation(n);
    EXPECT_THROW(take(), UnavailableError) << n;
    files_.heal();
    EXPECT_NO_THROW(take()) << n;
  }
}

TEST_F(DirectoryLockTest, ABeatThatFailsIsNoLoss) {
  const auto lock = take();
  files_.fail_writes_after(10);
  EXPECT_THROW(lock->beat(), ResourceExhaustedError);
  EXPECT_NO_THROW(lock->check());
  files_.heal();
  EXPECT_NO_THROW(lock->beat());
}

TEST_F(DirectoryLockTest, WhereTheFileSystemHasNoFlockTheRecordDecides) {
  EXPECT_EQ(outcome_of_flock(EWOULDBLOCK, "p"), FileLock::Outcome::kTaken);
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL}) {
    EXPECT_EQ(outcome_of_flock(error, "p"), FileLock::Outcome::kUnsupported);
  }
  EXPECT_THROW(outcome_of_flock(EIO, "p"), DataLossError);
}

TEST_F(DirectoryLockTest, WithoutFlockNoLockFileStays) {
  const auto unsupported = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  EXPECT_EQ(try_flock(lock_file(), unsupported).outcome, FileLock::Outcome::kUnsupported);
  EXPECT_FALSE(files_.exists(lock_file()));
  write_file_atomically(files_, lock_file(), "");
  EXPECT_EQ(try_flock(lock_file(), unsupported).outcome, FileLock::Outcome::kUnsupported);
  EXPECT_TRUE(files_.exists(lock_file()));  // of somebody else
}

TEST_F(DirectoryLockTest, ALockFileThatCannotBeOpenedIsAnError) {
  std::filesystem::create_symlink(directory_.file("nowhere"), lock_file());
  EXPECT_THROW(files_.try_lock(lock_file()), NotFoundError);
}

TEST_F(DirectoryLockTest, AFileSystemOfTheProgramsOwnIsAskedForItsLocks) {
  class WithoutLocks : public testing::FaultyFileSystem {
   public:
    FileLock::Attempt try_lock(const std::string& path) override { return FileSystem::try_lock(path); }
  };
  WithoutLocks files;
  const DirectoryLock lock(directory_.path(), {.files = &files});
  EXPECT_FALSE(lock.owner().has_flock);
  EXPECT_FALSE(files.exists(lock_file()));
}

TEST_F(DirectoryLockTest, ALockFileThatWasRemovedIsMadeAnewAndIsNotTheOldOnesToRemove) {
  FileLock::Attempt first = files_.try_lock(lock_file());
  EXPECT_EQ(files_.try_lock(lock_file()).outcome, FileLock::Outcome::kTaken);
  files_.remove(lock_file());
  const FileLock::Attempt second = files_.try_lock(lock_file());
  EXPECT_EQ(second.outcome, FileLock::Outcome::kHeld);
  first.lock.reset();
  EXPECT_EQ(files_.try_lock(lock_file()).outcome, FileLock::Outcome::kTaken);
}

TEST_F(DirectoryLockTest, ALockFileThatComesAndGoesHasOneHolderAtATime) {
  std::atomic<int> holders{0}, most{0}, held{0};
  const auto contend = [&] {
    for (int i = 0; i < 2000; ++i) {
      const FileLock::Attempt attempt = files_.try_lock(lock_file());
      if (attempt.lock == nullptr) continue;
      const int now = ++holders;
      if (now > most) most = now;
      ++held;
      std::this_thread::yield();
      --holders;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(contend);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_GT(held, 0);
}

TEST_F(DirectoryLockTest, ADirectoryThatIsNotThereIsTheFileSystemsError) {
  EXPECT_THROW(DirectoryLock(directory_.file("none")), NotFoundError);
}

}  // namespace
}  // namespace longhaul

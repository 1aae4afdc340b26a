#include "longhaul/io/directory_lock.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DirectoryLockTest : public ::testing::Test {
 protected:
  DirectoryLockTest() {
    log_before_ = set_log_sink([this](LogLevel, const std::string& line) { log_ += line + "\n"; });
  }
  ~DirectoryLockTest() override { set_log_sink(log_before_); }

  std::unique_ptr<DirectoryLock> take(bool use_flock = true) {
    return std::make_unique<DirectoryLock>(
        directory_.path(), DirectoryLockOptions{.files = &files_, .clock = &clock_, .use_flock = use_flock});
  }
  std::string refusal(bool use_flock = true) {
    try {
      take(use_flock);
    } catch (const DirectoryTakenError& error) {
      return error.what();
    }
    ADD_FAILURE() << "the directory was taken";
    return "";
  }
  // The record of an owner that is not known here.
  void leave_record(const ProcessIdentity& process, Seconds age = Seconds{0}, bool has_flock = true) {
    OwnerRecord owner = stranger();
    owner.process = process;
    owner.has_flock = has_flock;
    leave(owner, age);
  }
  void leave(const OwnerRecord& owner, Seconds age) {
    write_owner(files_, directory_.path(), owner);
    make_older(record(), age);
  }
  static void make_older(const std::string& path, Seconds age) {
    const auto now = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path,
                                     now - std::chrono::duration_cast<std::filesystem::file_time_type::duration>(age));
  }
  static OwnerRecord stranger() {
    return {
        .token = std::string(32, 'e'),
        .process = {.host = "far-away", .boot_id = "another", .pid_namespace = "pid:[1]", .pid = 42, .start_time = 7},
        .since = 1763721934,
        .heartbeat = 1763722264};
  }
  static ProcessIdentity of_a_dead_process() {
    ProcessIdentity dead = this_process();
    dead.start_time -= 1;
    return dead;
  }
  static ProcessIdentity of_another_container() {
    ProcessIdentity other = this_process();
    other.pid_namespace = "pid:[1]";
    return other;
  }
  std::string record() const { return directory_.file("chief.owner"); }
  std::string lock_file() const { return directory_.file("chief.lock"); }

  testing::FaultyFileSystem files_;
  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
  std::string log_;
  LogSink log_before_;
};

TEST_F(DirectoryLockTest, SaysWhoHasTheDirectoryAndLeavesNothingBehind) {
  {
    const auto lock = take();
    const auto owner = read_owner(files_, directory_.path());
    EXPECT_EQ(owner, lock->owner());
    EXPECT_EQ(owner->process, this_process());
    EXPECT_TRUE(owner->has_flock);
    EXPECT_EQ(owner->since, clock_.wall_time());
    EXPECT_TRUE(files_.exists(lock_file()));
  }
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
}

TEST_F(DirectoryLockTest, ASecondOneIsRefusedWithTheOwnersName) {
  for (const bool use_flock : {true, false}) {
    const auto lock = take(use_flock);
    for (const bool by_flock : {true, false}) {
      if (by_flock && !use_flock) continue;
      EXPECT_THAT(refusal(by_flock), AllOf(HasSubstr(directory_.path() + " already has a chief: host "),
                                           HasSubstr(this_process().host), HasSubstr(std::to_string(::getpid())),
                                           HasSubstr("since 2020-09-13 12:43:20 UTC, last heartbeat 2020-"),
                                           HasSubstr("It is this process")));
    }
    EXPECT_NO_THROW(lock->check());
  }
}

TEST_F(DirectoryLockTest, IsFreeOnceItWasGivenBack) {
  take();
  EXPECT_NO_THROW(take());
  take(/*use_flock=*/false);
  EXPECT_NO_THROW(take(/*use_flock=*/false));
}

TEST_F(DirectoryLockTest, ADeadOwnerOfThisMachineIsReplacedAtOnce) {
  for (const bool use_flock : {true, false}) {
    leave_record(of_a_dead_process());
    EXPECT_NO_THROW(take(use_flock)->check());
  }
}

TEST_F(DirectoryLockTest, ARecordThatThisProcessLeftIsReplacedAtOnce) {
  leave_record(this_process());
  EXPECT_NO_THROW(take(/*use_flock=*/false)->check());
}

TEST_F(DirectoryLockTest, AnOwnerOfAnotherContainerIsDeadWhenItsFlockIsFree) {
  leave_record(of_another_container());
  EXPECT_NO_THROW(take());
  leave_record(of_another_container(), Seconds{0}, /*has_flock=*/false);
  EXPECT_THAT(refusal(), HasSubstr("the directory is free 60 s after its last heartbeat"));
  leave_record(of_another_container());
  refusal(/*use_flock=*/false);
}

TEST_F(DirectoryLockTest, AnOwnerOnAnotherMachineIsDeadWhenItsHeartbeatIsOlderThanTheLimit) {
  const ProcessIdentity far_away = stranger().process;
  leave_record(far_away, Seconds{20});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("host far-away, process 42, since 2025-11-21 10:45:34 UTC"),
                               HasSubstr("which is in 40 s"), HasSubstr("give this run another directory")));
  leave_record(far_away, Seconds{61});
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, HasSubstr("taken for dead, silent for over 60 s: host far-away"));
}

TEST_F(DirectoryLockTest, AnOwnersOwnLimitCountsIfItIsLonger) {
  OwnerRecord patient = stranger();
  patient.limit = 600;
  leave(patient, Seconds{100});  // it beats every hundred seconds
  EXPECT_THAT(refusal(), HasSubstr("the directory is free 600 s after its last heartbeat, which is in 500 s"));
  const FileLock::Attempt other = files_.try_lock(lock_file());
  EXPECT_THAT(refusal(), HasSubstr("host far-away, process 42"));
  leave(patient, Seconds{601});
  EXPECT_NO_THROW(take());
  OwnerRecord hasty = stranger();
  hasty.limit = 1;
  leave(hasty, Seconds{20});
  EXPECT_THAT(refusal(/*use_flock=*/false), HasSubstr("is free 60 s after"));
}

TEST_F(DirectoryLockTest, ItsOwnLimitIsInItsRecord) {
  const DirectoryLock lock(directory_.path(), {.limit = Seconds{0.5}});
  EXPECT_EQ(read_owner(files_, directory_.path())->limit, 0.5);
}

TEST_F(DirectoryLockTest, TheLimitIsAPositiveNumber) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double limit : {0.0, -60.0, kInfinite, std::nan("")}) {
    EXPECT_THROW(DirectoryLock(directory_.path(), {.limit = Seconds{limit}}), InvalidArgumentError) << limit;
  }
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
}

TEST_F(DirectoryLockTest, ARecordThatIsRemovedWhileItIsLookedAtIsOfNobody) {
  class RecordVanishes : public testing::FaultyFileSystem {
   public:
    std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
      if (const size_t probe = path.find(".probe"); probe != path.npos) remove(path.substr(0, probe));
      return FaultyFileSystem::create(path, if_exists);
    }
  };
  leave_record(stranger().process);
  RecordVanishes files;
  EXPECT_NO_THROW(DirectoryLock(directory_.path(), {.files = &files}));
  EXPECT_THAT(log_, Not(HasSubstr("taken for dead")));
}

TEST_F(DirectoryLockTest, WhatKilledProcessesLeftOfRecordsIsSweptOnceItIsOld) {
  for (const char* name : {"chief.owner.tmp1234", "chief.owner.probe5678", "chief.owners"}) {
    write_file_atomically(files_, directory_.file(name), "");
    make_older(directory_.file(name), Seconds{61});
  }
  write_file_atomically(files_, directory_.file("chief.owner.tmpyoung"), "");
  const auto lock = take();
  EXPECT_THAT(files_.list(directory_.path()),
              ElementsAre("chief.lock", "chief.owner", "chief.owner.tmpyoung", "chief.owners"));
}

TEST_F(DirectoryLockTest, TheClocksOfTwoMachinesNeedNotAgree) {
  leave_record(stranger().process, Seconds{61});  // and its own text says 2025: no matter
  clock_.advance(Seconds{-1e6});
  EXPECT_NO_THROW(take());
  clock_.advance(Seconds{1e9});
  leave_record(stranger().process, Seconds{20});
  refusal();
}

TEST_F(DirectoryLockTest, AHeartbeatIsWritten) {
  const auto lock = take();
  clock_.advance(Seconds{15});
  lock->beat();
  const auto owner = read_owner(files_, directory_.path());
  EXPECT_EQ(owner->since, clock_.wall_time() - 15);
  EXPECT_EQ(owner->heartbeat, clock_.wall_time());
  EXPECT_NO_THROW(lock->check());
}

TEST_F(DirectoryLockTest, ALostOneSaysToWhomAndLeavesTheNewOwnersFilesAlone) {
  {
    const auto lock = take();
    write_owner(files_, directory_.path(), stranger());
    EXPECT_THROW(lock->check(), DirectoryTakenError);
    try {
      lock->beat();
      FAIL();
    } catch (const DirectoryTakenError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("now has another chief: host far-away, process 42"),
                                      HasSubstr("Nothing more is written there by process")));
    }
  }
  EXPECT_EQ(read_owner(files_, directory_.path()), stranger());
}

TEST_F(DirectoryLockTest, OneWhoseRecordIsGoneIsLost) {
  const auto lock = take();
  files_.remove(record());
  EXPECT_THROW(lock->beat(), DirectoryTakenError);
  EXPECT_FALSE(files_.exists(record()));
}

TEST_F(DirectoryLockTest, OneWhoseDirectoryIsGoneIsNotLost) {
  const std::string mounted = directory_.file("mounted"), elsewhere = directory_.file("elsewhere");
  std::filesystem::create_directory(mounted);
  DirectoryLock lock(mounted);
  std::filesystem::rename(mounted, elsewhere);
  EXPECT_THROW(lock.beat(), NotFoundError);
  EXPECT_THROW(check_directory_owner(files_, mounted + "/model.ckpt-1"), NotFoundError);
  std::filesystem::rename(elsewhere, mounted);
  EXPECT_NO_THROW(lock.beat());
}

TEST_F(DirectoryLockTest, WhoWritesToADirectoryFindsItsLock) {
  const auto check = [&](const std::string& path) { check_directory_owner(files_, path); };
  const auto lock = take();
  EXPECT_NO_THROW(check(directory_.file("model.ckpt-1")));
  write_owner(files_, directory_.path(), stranger());
  EXPECT_THROW(check(directory_.file("model.ckpt-1")), DirectoryTakenError);
  EXPECT_THROW(check("file://" + directory_.file("./checkpoint")), DirectoryTakenError);
  const testing::TemporaryDirectory other;
  EXPECT_NO_THROW(check(other.file("model.ckpt-1")));
  std::filesystem::create_directory_symlink(directory_.path(), other.file("link"));
  EXPECT_THROW(check(other.file("link/model.ckpt-1")), DirectoryTakenError);
}

TEST_F(DirectoryLockTest, AnEarlierOneThatEndsLateLeavesTheLaterOneItsDirectory) {
  auto earlier = take();
  files_.remove(record());
  files_.remove(lock_file());
  const auto later = take();
  earlier.reset();
  EXPECT_NO_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")));
  files_.remove(record());
  EXPECT_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")), DirectoryTakenError);
}

TEST_F(DirectoryLockTest, OneByWayOfALinkIsFoundWhereTheLinkLeadsNowhereOrElsewhere) {
  const testing::TemporaryDirectory links;
  const std::string link = links.file("link"), path = link + "/model.ckpt-1";
  std::filesystem::create_directory_symlink(directory_.path(), link);
  const DirectoryLock lock(link);
  EXPECT_NO_THROW(check_directory_owner(files_, path));
  const auto lead_to = [&](const std::string& place) {
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink(place, link);
  };
  lead_to("link");  // in a circle
  EXPECT_THROW(check_directory_owner(files_, path), Error);
  lead_to(links.file("nowhere"));
  EXPECT_THROW(check_directory_owner(files_, path), NotFoundError);
  std::filesystem::create_directory(links.file("other"));
  lead_to(links.file("other"));
  EXPECT_THROW(check_directory_owner(files_, path), DirectoryTakenError);
  EXPECT_NO_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")));
}

TEST_F(DirectoryLockTest, ADirectoryThatCannotBeToldFromItsOwnIsNotTakenForAnother) {
  const testing::TemporaryDirectory links;
  std::filesystem::create_directory_symlink("circle", links.file("circle"));
  const auto lock = take();
  EXPECT_THROW(check_directory_owner(files_, links.file("circle/model.ckpt-1")), Error);
}

TEST_F(DirectoryLockTest, WhatWritesWhileThisProcessTakesItAnewIsNotRefused) {
  OwnerRecord anew = take()->owner();
  anew.token = std::string(32, 'a');
  write_owner(files_, directory_.path(), anew);  // as a lock does, the moment before it is one
  EXPECT_NO_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")));
}

TEST_F(DirectoryLockTest, WhoHasGivenItBackMayWriteUntilAnotherHasIt) {
  const std::string path = directory_.file("model.ckpt-1");
  take();
  EXPECT_NO_THROW(check_directory_owner(files_, path));
  write_owner(files_, directory_.path(), stranger());
  EXPECT_THROW(check_directory_owner(files_, path), DirectoryTakenError);
}

TEST_F(DirectoryLockTest, ADamagedRecordCountsForNothing) {
  write_file_atomically(files_, record(), "longhaul owner 1\ntok");
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, HasSubstr("is damaged, and counts for nothing"));
}

TEST_F(DirectoryLockTest, ARecordThatIsTooLongCountsForNothing) {
  write_file_atomically(files_, record(), std::string(5000, 'x'));
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, AllOf(HasSubstr("over 4096 bytes"), HasSubstr("counts for nothing")));
}

TEST_F(DirectoryLockTest, ItsOwnRecordIsRepairedByABeat) {
  const auto lock = take();
  for (const std::string& damage : {std::string("longhaul own"), std::string(5000, 'x')}) {
    write_file_atomically(files_, record(), damage);
    EXPECT_THROW(lock->check(), DataLossError);
    clock_.advance(Seconds{10});
    lock->beat();
    EXPECT_NO_THROW(lock->check());
    EXPECT_EQ(read_owner(files_, directory_.path())->heartbeat, clock_.wall_time());
  }
  EXPECT_THAT(log_, HasSubstr("is damaged, and is written anew"));
}

// A server of files that does not answer, say: who has the directory is not known.
TEST_F(DirectoryLockTest, ARecordThatCannotBeReadIsNotADamagedOne) {
  class ReadsFail : public testing::FaultyFileSystem {
   public:
    std::unique_ptr<ReadableFile> open(const std::string& path) override { throw_errno(EIO, "open " + path); }
  };
  leave_record(stranger().process);
  ReadsFail files;
  EXPECT_THROW(DirectoryLock(directory_.path(), {.files = &files}), DataLossError);
  EXPECT_EQ(read_owner(files_, directory_.path())->token, stranger().token);
}

TEST_F(DirectoryLockTest, AFlockIsRespectedWithoutARecordAndWithThatOfADeadProcess) {
  const FileLock::Attempt other = files_.try_lock(lock_file());
  EXPECT_THAT(refusal(), HasSubstr("has not yet said who it is"));
  leave_record(of_a_dead_process());
  EXPECT_THAT(refusal(), HasSubstr("a child of it still has " + lock_file() + " open"));
}

TEST_F(DirectoryLockTest, TheFlockOfAMachineThatDiedIsNoObstacle) {
  const FileLock::Attempt other = files_.try_lock(lock_file());
  leave_record(stranger().process, Seconds{20});
  EXPECT_THAT(refusal(), HasSubstr("host far-away, process 42"));
  leave_record(stranger().process, Seconds{61});
  const auto lock = take();
  EXPECT_FALSE(lock->owner().has_flock);
  EXPECT_NO_THROW(lock->check());
  EXPECT_THAT(log_, HasSubstr("is still locked, for a machine that is dead"));
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

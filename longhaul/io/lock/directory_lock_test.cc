#include "longhaul/io/lock/directory_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>

#include "longhaul/io/lock/directory_lock_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  EXPECT_THAT(refusal(), HasSubstr("the directory is free 60 s after the last heartbeat"));
  leave_record(of_another_container());
  refusal(/*use_flock=*/false);
}

TEST_F(DirectoryLockTest, AnOwnerOnAnotherMachineIsDeadWhenItsHeartbeatIsOlderThanTheLimit) {
  const ProcessIdentity far_away = stranger().process;
  leave_record(far_away, Seconds{20});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("host far-away, process 42, since 2025-11-21 10:45:34 UTC"),
                               HasSubstr("heartbeat (in 40 s)"), HasSubstr("give this run another directory")));
  leave_record(far_away, Seconds{61});
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, HasSubstr("has been silent for over 60 s and is considered dead: host far-away"));
}

TEST_F(DirectoryLockTest, ARecordFromTheFutureMayBeRemovedByHand) {
  leave_record(stranger().process, Seconds{-86400});
  const std::string record = owner_path(directory_.path());
  EXPECT_THAT(refusal(), AllOf(HasSubstr("remove " + record + " by hand"), HasSubstr("is 86400 s in the future")));
  files_.remove(record);
  EXPECT_NO_THROW(take());
}

TEST_F(DirectoryLockTest, APipeInPlaceOfTheRecordIsRefusedAndNotWaitedFor) {
  const std::string record = owner_path(directory_.path());
  ASSERT_EQ(::mkfifo(record.c_str(), 0600), 0);
  EXPECT_THROW(take(), InvalidArgumentError);
}

TEST_F(DirectoryLockTest, AnOwnersOwnLimitCountsIfItIsLonger) {
  OwnerRecord patient = stranger();
  patient.limit = 600;
  leave(patient, Seconds{100});  // it beats every hundred seconds
  EXPECT_THAT(refusal(), HasSubstr("the directory is free 600 s after the last heartbeat (in 500 s)"));
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
  EXPECT_THAT(log_, Not(HasSubstr("considered dead")));
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

TEST_F(DirectoryLockTest, WhatSomebodyElseHasNamedAfterTheRecordIsNotSwept) {
  const std::string copy = directory_.file("chief.owner.bak");
  const std::string folder = directory_.file("chief.owner.tmp"), pipe = directory_.file("chief.owner.probe");
  write_file_atomically(files_, copy, "");
  files_.make_directories(folder);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {copy, folder, pipe}) make_older(path, Seconds{61});
  const auto lock = take();
  lock->beat();
  for (const std::string& path : {copy, folder, pipe}) EXPECT_TRUE(files_.exists(path)) << path;
}

TEST_F(DirectoryLockTest, WhatIsYoungWhenItIsTakenIsSweptByALaterBeat) {
  const std::string left = directory_.file("chief.owner.tmp1234");
  write_file_atomically(files_, left, "longhaul own");
  const auto lock = take();
  lock->beat();
  EXPECT_TRUE(files_.exists(left)) << "somebody may be writing it";
  make_older(left, Seconds{61});
  lock->beat();
  EXPECT_FALSE(files_.exists(left));
}

TEST_F(DirectoryLockTest, TheRecordThatAKilledProcessHasNotRenamedIsSweptAtOnceAndAnothersIsNot) {
  const auto leave_half = [&](const char* name, const ProcessIdentity& process) {
    OwnerRecord owner = stranger();
    owner.process = process;
    write_file_atomically(files_, directory_.file(name), format_owner(owner));
  };
  leave_half("chief.owner.tmp1", of_a_dead_process());
  leave_half("chief.owner.tmp2", this_process());
  leave_half("chief.owner.tmp3", stranger().process);
  const auto lock = take();
  EXPECT_THAT(files_.list(directory_.path()),
              ElementsAre("chief.lock", "chief.owner", "chief.owner.tmp2", "chief.owner.tmp3"));
}

TEST_F(DirectoryLockTest, OneThatCannotBeSweptKeepsNoOthers) {
  files_.make_directories(directory_.file("chief.owner.tmp1"));
  write_file_atomically(files_, directory_.file("chief.owner.tmp1/file"), "");
  write_file_atomically(files_, directory_.file("chief.owner.tmp2"), "");
  for (const char* name : {"chief.owner.tmp1", "chief.owner.tmp2"}) make_older(directory_.file(name), Seconds{61});
  const auto lock = take();
  EXPECT_TRUE(files_.exists(directory_.file("chief.owner.tmp1/file")));
  EXPECT_FALSE(files_.exists(directory_.file("chief.owner.tmp2")));
}

TEST_F(DirectoryLockTest, AnOddExceptionOfASweepKeepsNeitherTheLockNorTheNextOut) {
  class OddList : public testing::FaultyFileSystem {
   public:
    std::vector<std::string> list(const std::string&) override { throw 42; }
  };
  OddList files;
  for (int time = 0; time < 2; ++time) {
    const DirectoryLock lock(directory_.path(), {.files = &files});
    EXPECT_NO_THROW(lock.check());
  }
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
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
    EXPECT_THROW(lock->check(), DirectoryLostError);
    try {
      lock->beat();
      FAIL();
    } catch (const DirectoryLostError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("now has another chief: host far-away, process 42"),
                                      HasSubstr("The previous chief (process ")));
    }
  }
  EXPECT_EQ(read_owner(files_, directory_.path()), stranger());
}

TEST_F(DirectoryLockTest, OneWhoseRecordIsGoneIsNotWrittenToAndLostAfterTheLimit) {
  const auto lock = take();
  files_.remove(record());
  EXPECT_THROW(lock->check(), DirectoryAwayError);
  EXPECT_THROW(lock->beat(), DirectoryAwayError);
  EXPECT_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")), DirectoryAwayError);
  clock_.advance(Seconds{59});
  EXPECT_THROW(lock->beat(), DirectoryAwayError);
  clock_.advance(Seconds{1});
  EXPECT_THROW(lock->beat(), DirectoryLostError);
  EXPECT_FALSE(files_.exists(record()));
}

TEST_F(DirectoryLockTest, WhoWritesToADirectoryFindsItsLock) {
  const auto check = [&](const std::string& path) { check_directory_owner(files_, path); };
  const auto lock = take();
  EXPECT_NO_THROW(check(directory_.file("model.ckpt-1")));
  write_owner(files_, directory_.path(), stranger());
  EXPECT_THROW(check(directory_.file("model.ckpt-1")), DirectoryLostError);
  EXPECT_THROW(check("file://" + directory_.file("./checkpoint")), DirectoryLostError);
  const testing::TemporaryDirectory other;
  EXPECT_NO_THROW(check(other.file("model.ckpt-1")));
  std::filesystem::create_directory_symlink(directory_.path(), other.file("link"));
  EXPECT_THROW(check(other.file("link/model.ckpt-1")), DirectoryLostError);
}

TEST_F(DirectoryLockTest, AnEarlierOneThatEndsLateLeavesTheLaterOneItsDirectory) {
  auto earlier = take();
  files_.remove(record());
  files_.remove(lock_file());
  const auto later = take();
  earlier.reset();
  EXPECT_NO_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")));
  files_.remove(record());
  EXPECT_THROW(check_directory_owner(files_, directory_.file("model.ckpt-1")), DirectoryAwayError);
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
  EXPECT_THROW(check_directory_owner(files_, path), DirectoryAwayError);
  std::filesystem::create_directory(links.file("other"));
  lead_to(links.file("other"));
  EXPECT_THROW(check_directory_owner(files_, path), DirectoryAwayError);
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
  EXPECT_THROW(check_directory_owner(files_, path), DirectoryLostError);
}

TEST_F(DirectoryLockTest, ADamagedRecordCountsForNothing) {
  write_file_atomically(files_, record(), "longhaul owner 1\ntok");
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, HasSubstr("is damaged and is ignored"));
}

TEST_F(DirectoryLockTest, ARecordThatIsTooLongCountsForNothing) {
  write_file_atomically(files_, record(), std::string(5000, 'x'));
  EXPECT_NO_THROW(take()->check());
  EXPECT_THAT(log_, AllOf(HasSubstr("more than 4096 bytes"), HasSubstr("is ignored")));
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
  EXPECT_THAT(log_, HasSubstr("is damaged and is written again"));
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

}  // namespace
}  // namespace longhaul

#include <filesystem>

#include "longhaul/io/lock/directory_lock_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A directory that is locked, and can be taken away as by an unmount: what comes in its place is another one.
class DirectoryAwayTest : public DirectoryLockTest {
 protected:
  DirectoryAwayTest() {
    std::filesystem::create_directory(mounted_);
    lock_ = std::make_unique<DirectoryLock>(mounted_, DirectoryLockOptions{.files = &files_, .clock = &clock_});
  }
  void take_away() { std::filesystem::rename(mounted_, elsewhere_); }
  void bring_back() { std::filesystem::rename(elsewhere_, mounted_); }
  std::string file(const std::string& name = "model.ckpt-1") const { return join_path(mounted_, name); }
  void check(const std::string& path) { check_directory_owner(files_, path); }

  // What a beat and a write say, alike.
  std::string refusal() {
    const std::string of_beat = away([&] { lock_->beat(); });
    EXPECT_EQ(away([&] { check(file()); }), of_beat);
    return of_beat;
  }

  const std::string mounted_ = directory_.file("mounted"), elsewhere_ = directory_.file("elsewhere");
  std::unique_ptr<DirectoryLock> lock_;

 private:
  template <typename Call>
  static std::string away(Call call) {
    try {
      call();
    } catch (const DirectoryAwayError& error) {
      return error.what();
    }
    ADD_FAILURE() << "the directory counts as there";
    return "";
  }
};

TEST_F(DirectoryAwayTest, OneThatIsGoneIsNotLostAndWorksAgainWhenItIsBack) {
  take_away();
  for (int beat = 0; beat < 3; ++beat) EXPECT_THAT(refusal(), HasSubstr(mounted_ + ": the directory is gone"));
  EXPECT_FALSE(files_.exists(mounted_));
  bring_back();
  EXPECT_NO_THROW(lock_->beat());
  EXPECT_NO_THROW(check(file()));
}

TEST_F(DirectoryAwayTest, AnotherOneOfItsNameIsDescribedAndNotWrittenTo) {
  const auto id = directory_id(mounted_);
  take_away();
  std::filesystem::create_directory(mounted_);
  for (int beat = 0; beat < 3; ++beat) {
    EXPECT_THAT(refusal(), AllOf(HasSubstr(mounted_ + ": another directory has this name now"),
                                 HasSubstr("expected " + describe(*id) + " with the chief.owner of this chief"),
                                 HasSubstr("found " + describe(*directory_id(mounted_)) + " without one")));
  }
  EXPECT_THAT(files_.list(mounted_), IsEmpty());
  std::filesystem::remove(mounted_);
  bring_back();
  EXPECT_NO_THROW(lock_->beat());
}

TEST_F(DirectoryAwayTest, AnotherOneWithAChiefOfItsOwnIsNotATakeover) {
  take_away();
  std::filesystem::create_directory(mounted_);
  write_owner(files_, mounted_, stranger());
  EXPECT_THAT(refusal(), HasSubstr("with that of host far-away, process 42"));
  EXPECT_EQ(read_owner(files_, mounted_), stranger());
}

TEST_F(DirectoryAwayTest, AnotherOneWithADamagedRecordKeepsIt) {
  take_away();
  std::filesystem::create_directory(mounted_);
  write_file_atomically(files_, owner_path(mounted_), "longhaul own");
  EXPECT_THAT(refusal(), HasSubstr("with a damaged one"));
  EXPECT_EQ(read_file(files_, owner_path(mounted_)), "longhaul own");
}

TEST_F(DirectoryAwayTest, OneThatWasTakenOverMeanwhileIsLostWhenItIsBack) {
  take_away();
  refusal();
  write_owner(files_, elsewhere_, stranger());
  bring_back();
  EXPECT_THROW(check(file()), DirectoryLostError);
  EXPECT_THROW(lock_->beat(), DirectoryLostError);
}

TEST_F(DirectoryAwayTest, ACopyIsAnotherOneThoughItHasTheRecord) {
  take_away();
  std::filesystem::copy(elsewhere_, mounted_, std::filesystem::copy_options::recursive);
  for (int beat = 0; beat < 3; ++beat) EXPECT_THAT(refusal(), HasSubstr("with a copy of it"));
  std::filesystem::remove_all(mounted_);
  std::filesystem::rename(elsewhere_, mounted_);
  EXPECT_NO_THROW(lock_->beat());
  EXPECT_NO_THROW(check(file()));
}

TEST_F(DirectoryAwayTest, ACopyKeepsItsRecordWhenTheChiefEnds) {
  take_away();
  std::filesystem::copy(elsewhere_, mounted_);
  const std::string record = read_file(files_, file("chief.owner"));
  lock_.reset();
  EXPECT_EQ(read_file(files_, file("chief.owner")), record);
}

TEST_F(DirectoryAwayTest, WithoutFlocksTheRecordIsAllThatCounts) {
  lock_.reset();
  lock_ = std::make_unique<DirectoryLock>(mounted_,
                                          DirectoryLockOptions{.files = &files_, .clock = &clock_, .use_flock = false});
  take_away();
  std::filesystem::copy(elsewhere_, mounted_);  // with another inode, as some file systems give at each look
  EXPECT_NO_THROW(lock_->beat());
  EXPECT_NO_THROW(check(file()));
  EXPECT_NO_THROW(check_directory_is_there(files_, mounted_));
  std::filesystem::remove(owner_path(mounted_));
  EXPECT_THROW(check_directory_is_there(files_, mounted_), DirectoryAwayError);
}

TEST_F(DirectoryAwayTest, OneThatIsRemovedAndMadeAnewIsAnotherOne) {
  std::filesystem::remove_all(mounted_);
  refusal();
  std::filesystem::create_directory(mounted_);
  for (int beat = 0; beat < 3; ++beat) EXPECT_THAT(refusal(), HasSubstr("another directory has this name now"));
}

TEST_F(DirectoryAwayTest, OneThatIsBeingRemovedIsNotLostYet) {
  files_.remove(owner_path(mounted_));
  refusal();
  std::filesystem::remove_all(mounted_);
  refusal();
  std::filesystem::create_directory(mounted_);
  refusal();
}

TEST_F(DirectoryAwayTest, OneWhoseRecordCannotBeReadIsAway) {
  class ReadsFail : public testing::FaultyFileSystem {
   public:
    std::unique_ptr<ReadableFile> open(const std::string& path) override { throw_errno(ESTALE, "open " + path); }
  } stale;
  try {
    check_directory_owner(stale, file());
    FAIL();
  } catch (const DirectoryAwayError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot tell who its chief is"), HasSubstr("Stale file handle")));
  }
}

TEST_F(DirectoryAwayTest, WhatLiesBelowIsAwayWithIt) {
  EXPECT_NO_THROW(check(file("eval/events")));
  take_away();
  EXPECT_THROW(check(file("eval/events")), DirectoryAwayError);
  EXPECT_THROW(check(file("eval/deep/events")), DirectoryAwayError);
  EXPECT_NO_THROW(check(directory_.file("other")));
  lock_.reset();
  EXPECT_NO_THROW(check(file("eval/events"))) << "it is nobody's any more";
}

TEST_F(DirectoryAwayTest, WhoHadItIsToldThatItIsNotThere) {
  EXPECT_NO_THROW(check_directory_is_there(files_, mounted_));
  lock_.reset();
  EXPECT_NO_THROW(check_directory_is_there(files_, mounted_));
  take_away();
  EXPECT_THROW(check_directory_is_there(files_, mounted_), DirectoryAwayError);
  std::filesystem::create_directory(mounted_);
  EXPECT_THROW(check_directory_is_there(files_, mounted_), DirectoryAwayError);
  EXPECT_NO_THROW(check_directory_is_there(files_, directory_.file("never had")));
}

}  // namespace
}  // namespace longhaul

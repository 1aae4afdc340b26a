#include "longhaul/train/checkpointing/checkpoint_mirror.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/io/files/bucket_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/interrupted_clock_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Files that can be held up, at the first byte of a copy or when one of them is opened. One may be unreadable.
class SlowFiles : public testing::FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override {
    if (path.find("/.incoming/") != path.npos) wait();
    return testing::FaultyFileSystem::create_large(path, options);
  }
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    if (path == unreadable) throw PermissionDeniedError("open " + path + ": Permission denied");
    if (path == slow_to_open) wait();
    if (path == odd) throw 7;
    return testing::FaultyFileSystem::open(path);
  }
  bool exists(const std::string& path) override {
    if (path == odd) throw 7;
    return testing::FaultyFileSystem::exists(path);
  }
  std::string unreadable, slow_to_open, odd;  // set before there is a mirror

  void hold() { is_held_ = true; }
  void let_go() { is_held_ = false; }
  bool has_waiting() const { return waiting_ > 0; }

 private:
  void wait() {
    ++waiting_;
    while (is_held_) std::this_thread::yield();
    --waiting_;
  }
  std::atomic<bool> is_held_{false};
  std::atomic<int> waiting_{0};
};

// Checkpoints of a training in one directory, and its mirror in another. Time stands still unless a test moves it.
class MirrorTest : public ::testing::Test {
 protected:
  MirrorTest() { options.directory = place.file("mirror"); }
  ~MirrorTest() override { files.let_go(); }

  std::string save(int step) { return save(step, static_cast<float>(step)); }
  std::string save(int step, float value) {
    const std::string prefix = directory.file(fmt::format("m-{}", step));
    BundleWriter writer(unsynced, prefix);
    writer.add("v", Tensor::of(Shape({1000}), std::vector<float>(1000, value)));
    writer.finish();
    return prefix;
  }
  std::string mirrored(int step) { return options.directory + fmt::format("/m-{}", step); }
  bool is_there(int step) {
    return checkpoint_exists(FileSystem::real(), mirrored(step)) &&
           BundleReader(FileSystem::real(), mirrored(step)).verify().empty();
  }
  void damage(const std::string& prefix) {
    std::string bytes = read_file(FileSystem::real(), data_path(prefix, 0, 1));
    bytes[1] = static_cast<char>(bytes[1] ^ 4);
    write_file_atomically(FileSystem::real(), data_path(prefix, 0, 1), bytes);
  }
  std::vector<std::string> steps() {
    std::vector<std::string> names;
    for (const auto& found : find_checkpoints(FileSystem::real(), options.directory, "m")) {
      names.push_back(base_name(found.prefix));
    }
    return names;
  }
  std::unique_ptr<CheckpointMirror> mirror() {
    return std::make_unique<CheckpointMirror>(directory.path(), options, files, clock);
  }
  void mirror_one(int step) {
    const auto one = mirror();
    one->add(save(step));
    one->close();
  }
  // As if the process were killed at the n-th of its operations.
  void mirror_until_killed(int step, int n) {
    MirrorOptions dying = options;
    dying.end_timeout = Seconds{0};
    const std::string prefix = save(step);
    CheckpointMirror one(directory.path(), dying, files, clock);
    files.fail_operation(n, testing::FaultyFileSystem::Fault::kForGood);
    one.add(prefix);
    eventually([&] { return one.status().consecutive_failures > 0 || !one.status().last_prefix.empty(); });
    one.close();
    files.heal();
  }
  std::vector<std::string> listed() {
    std::vector<std::string> names;
    for (const auto& path :
         read_checkpoint_state(FileSystem::real(), options.directory).state.all_model_checkpoint_paths) {
      names.push_back(base_name(path));
    }
    return names;
  }
  std::string note() const { return options.directory + "/checkpoint.unlisted"; }
  // As if the process were killed before it listed the copy.
  void copy_unlisted(int step) {
    copy_checkpoint(save(step), mirrored(step), {});
    write_file_atomically(FileSystem::real(), note(), fmt::format("m-{}\n", step));
  }
  // Another process does, as it takes `owner` for dead.
  void take_over(const std::string& place, OwnerRecord owner) {
    owner.token = std::string(32, 'a');
    write_owner(FileSystem::real(), place, owner);
  }
  template <typename Condition>
  void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  testing::TemporaryDirectory directory, place;
  testing::FakeClock clock;
  BucketFiles unsynced{FileSystem::real(), {.syncs = false}};  // no machine crashes here, and the tests are faster
  SlowFiles files{unsynced};
  MirrorOptions options;
  const ThreadsEnd threads;
};

TEST_F(MirrorTest, AnErrorOfOddTypeIsAFailureLikeOthers) {
  const std::string prefix = save(1);
  files.odd = index_path(prefix);
  options.end_timeout = Seconds{0};
  const auto one = mirror();
  one->add(prefix);
  eventually([&] { return one->status().consecutive_failures > 0; });
  one->close();
}

TEST_F(MirrorTest, GetsACheckpointThatWasCommitted) {
  const auto mirror = this->mirror();
  mirror->add(save(1));
  eventually([&] { return mirror->status().last_prefix == mirrored(1); });
  EXPECT_TRUE(is_there(1));
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), options.directory), mirrored(1));
  EXPECT_EQ(mirror->status().consecutive_failures, 0);
}

TEST_F(MirrorTest, WhatComesWhileItCopiesDoesNotQueueUp) {
  const auto mirror = this->mirror();
  files.hold();
  mirror->add(save(1));
  eventually([&] { return files.has_waiting(); });
  for (int step = 2; step <= 5; ++step) mirror->add(save(step));
  files.let_go();
  mirror->close();
  EXPECT_THAT(steps(), ElementsAre("m-1", "m-5"));
}

TEST_F(MirrorTest, GetsAgainWhatIsReplacedWhileItCopies) {
  const auto mirror = this->mirror();
  files.hold();
  mirror->add(save(1));
  eventually([&] { return files.has_waiting(); });
  mirror->add(save(1, 77));
  files.let_go();
  mirror->close();
  EXPECT_EQ(BundleReader(FileSystem::real(), mirrored(1)).read("v").flat<float>()[0], 77);
}

TEST_F(MirrorTest, IsRetainedByItsOwnRule) {
  options.max_to_keep = 2;
  const auto mirror = this->mirror();
  for (int step = 1; step <= 4; ++step) {
    mirror->add(save(step));
    eventually([&] { return mirror->status().last_prefix == mirrored(step); });
  }
  EXPECT_THAT(steps(), ElementsAre("m-3", "m-4"));
}

TEST_F(MirrorTest, OneInSoManyHoursStays) {
  options.max_to_keep = 1;
  options.keep_checkpoint_every_n_hours = 2;
  const auto mirror = this->mirror();
  for (int step = 1; step <= 6; ++step) {
    clock.advance(Seconds{3601});
    mirror->add(save(step));
    eventually([&] { return mirror->status().last_prefix == mirrored(step); });
  }
  EXPECT_THAT(steps(), ElementsAre("m-3", "m-5", "m-6"));
}

TEST_F(MirrorTest, GoesOnWithItsRuleAfterARestart) {
  options.max_to_keep = 2;
  for (int step = 1; step <= 4; ++step) mirror_one(step);
  EXPECT_THAT(steps(), ElementsAre("m-3", "m-4"));
}

TEST_F(MirrorTest, MayBeMovedWithItsStateFile) {
  mirror_one(1);
  const std::string state = read_file(FileSystem::real(), options.directory + "/checkpoint");
  EXPECT_THAT(state, AllOf(HasSubstr("\"m-1\""), Not(HasSubstr(options.directory))));
  const std::string moved = place.file("moved");
  std::filesystem::rename(options.directory, moved);
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), moved), moved + "/m-1");
}

TEST_F(MirrorTest, OneThatFailsIsLoggedOnceAndTriedAgainUntilItWorks) {
  const LogRecorder log;
  write_file_atomically(FileSystem::real(), options.directory, "no directory");
  const auto mirror = this->mirror();
  mirror->add(save(1));
  for (int failures = 1; failures <= 3; ++failures) {
    eventually([&] { return mirror->status().consecutive_failures == failures; });
    clock.advance(Seconds{5.0 * (1 << (failures - 1))});
  }
  EXPECT_THAT(mirror->status().last_error, HasSubstr(options.directory));
  std::filesystem::remove(options.directory);
  clock.advance(Seconds{1000});
  eventually([&] { return mirror->status().last_prefix == mirrored(1); });
  EXPECT_EQ(mirror->status().consecutive_failures, 0);
  const std::string text = log.text(LogLevel::kError);
  EXPECT_EQ(text.find("could not be mirrored"), text.rfind("could not be mirrored")) << text;
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("works again"));
}

TEST_F(MirrorTest, AFailureOfAnyOperationIsMadeGoodByTheNextAttempt) {
  options.lock.lock = false;
  mirror_one(1);
  const int operations = static_cast<int>(files.operations().size());
  for (int n = 0; n < operations; ++n) {
    std::filesystem::remove_all(options.directory);
    const auto mirror = this->mirror();
    const std::string prefix = save(1);
    files.fail_operation(n);
    mirror->add(prefix);
    eventually([&] {
      clock.advance(Seconds{10});
      return mirror->status().last_prefix == mirrored(1);
    });
    EXPECT_TRUE(is_there(1)) << n;
    EXPECT_EQ(latest_checkpoint(FileSystem::real(), options.directory), mirrored(1)) << n;
    EXPECT_TRUE(checkpoint_exists(FileSystem::real(), prefix)) << n;
    files.heal();
  }
}

TEST_F(MirrorTest, OneOfAnotherDirectoryIsLeftOut) {
  const std::string elsewhere = place.file("m-7");
  copy_checkpoint(save(7), elsewhere, {});
  const auto mirror = this->mirror();
  mirror->add(elsewhere);
  mirror->close();
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(MirrorTest, OneThatWasDeletedIsLeftOutAndIsNoFailure) {
  const LogRecorder log;
  const auto mirror = this->mirror();
  const std::string gone = save(1);
  remove_checkpoint(FileSystem::real(), gone);
  mirror->add(gone);
  eventually([&] { return log.text().find("was deleted before") != std::string::npos; });
  mirror->add(save(2));
  mirror->close();
  EXPECT_THAT(steps(), ElementsAre("m-2"));
  EXPECT_EQ(mirror->status().last_error, "");
}

TEST_F(MirrorTest, ADamagedOneIsNotMirroredAndTheNextOneIs) {
  const LogRecorder log;
  const auto mirror = this->mirror();
  const std::string bad = save(1);
  damage(bad);
  mirror->add(bad);
  eventually([&] { return log.text(LogLevel::kError).find("is damaged and is not mirrored") != std::string::npos; });
  EXPECT_THAT(steps(), IsEmpty());
  mirror->add(save(2));
  clock.advance(Seconds{10});
  mirror->close();
  EXPECT_THAT(steps(), ElementsAre("m-2"));
}

TEST_F(MirrorTest, OneThatHangsDelaysTheEndOnlyForItsTimeout) {
  const LogRecorder log;
  options.end_timeout = Seconds{0.05};
  CheckpointMirror mirror(directory.path(), options, files);
  files.hold();
  mirror.add(save(1));
  eventually([&] { return files.has_waiting(); });
  const Seconds start = Clock::real().now();
  mirror.close();
  EXPECT_LT(Clock::real().now() - start, Seconds{10});
  EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr("m-1 is not in the mirror"), HasSubstr("no time")));
  files.let_go();
  eventually([&] { return !files.has_waiting(); });
  eventually([&] { return !FileSystem::real().exists(options.directory + "/chief.owner"); });
  EXPECT_THAT(steps(), IsEmpty()) << "what was given up is not committed later";
}

// By a clock on which whoever waits passes the time.
TEST_F(MirrorTest, OneThatHangsHoldsUpTheEndNoLongerThanADeadlineLeaves) {
  testing::FakeClock passing(testing::FakeClock::Waits::kPassTime);
  Deadline deadline(passing);
  options.lock.lock = false;  // whose heartbeats would pass it, too
  options.end_timeout = Seconds{1e9};
  CheckpointMirror mirror(directory.path(), options, files, passing);
  files.hold();
  mirror.add(save(1));
  eventually([&] { return files.has_waiting(); });
  deadline.bring_forward(Seconds{10});
  const Seconds start = passing.now();
  mirror.close(&deadline);
  EXPECT_LT(passing.now() - start, Seconds{20});
  files.let_go();
  eventually([&] { return !threads.have_not(); });  // the mirror's uses the clock of this test
}

TEST_F(MirrorTest, ADeadlineThatIsSetWhileAThreadThatHangsIsJoinedEndsThatWait) {
  InterruptedClock interrupted;
  Deadline deadline(interrupted);
  options.lock.lock = false;  // whose heartbeats would wait on the clock, too
  options.end_timeout = Seconds{0};
  CheckpointMirror mirror(directory.path(), options, files, interrupted);
  files.hold();
  mirror.add(save(1));
  eventually([&] { return files.has_waiting(); });
  interrupted.event = [&] { deadline.bring_forward(Seconds{0}); };
  const Seconds start = interrupted.now();
  mirror.close(&deadline);
  EXPECT_TRUE(deadline.is_set()) << "the thread was waited for";
  EXPECT_EQ(interrupted.now(), start);
  files.let_go();
  eventually([&] { return !threads.have_not(); });  // the mirror's uses the clock of this test
  interrupted.join();
}

TEST_F(MirrorTest, TheEndWaitsForOneThatFailsForAMoment) {
  options.end_timeout = Seconds{30};
  options.attempts = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.first_wait = Seconds{0.01}});
  files.fail_operation(3);
  CheckpointMirror mirror(directory.path(), options, files);
  mirror.add(save(1));
  mirror.close();
  EXPECT_TRUE(is_there(1));
}

TEST_F(MirrorTest, AnothersMirrorIsNotWrittenTo) {
  std::filesystem::create_directory(options.directory);
  const auto mirror = this->mirror();
  {
    const DirectoryLock other(options.directory);
    mirror->add(save(1));
    eventually([&] { return mirror->status().consecutive_failures == 1; });
    EXPECT_THAT(mirror->status().last_error, HasSubstr("already has a chief"));
    EXPECT_THAT(steps(), IsEmpty());
  }
  clock.advance(Seconds{10});
  eventually([&] { return is_there(1); });
}

TEST_F(MirrorTest, WhoHasLostTheDirectoryMirrorsNothingAnyMore) {
  const std::string first = save(1), second = save(2);
  const DirectoryLock lock(directory.path());
  const auto mirror = this->mirror();
  take_over(directory.path(), lock.owner());
  mirror->add(first);
  eventually([&] { return mirror->status().consecutive_failures == 1; });
  mirror->add(second);
  mirror->close();
  EXPECT_THAT(steps(), IsEmpty());
  write_owner(FileSystem::real(), directory.path(), lock.owner());
}

TEST_F(MirrorTest, WhoLosesTheDirectoryWhileItCopiesCommitsNothing) {
  const std::string first = save(1);
  const DirectoryLock lock(directory.path());
  const auto mirror = this->mirror();
  files.hold();
  mirror->add(first);
  eventually([&] { return files.has_waiting(); });
  take_over(directory.path(), lock.owner());
  files.let_go();
  mirror->close();
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_THAT(mirror->status().last_error, HasSubstr(directory.path() + " now has another chief"));
  write_owner(FileSystem::real(), directory.path(), lock.owner());
}

TEST_F(MirrorTest, WhoLosesTheMirrorWhileItCopiesCommitsNothingUntilItIsFreeAgain) {
  const auto mirror = this->mirror();
  files.hold();
  mirror->add(save(1));
  eventually([&] { return files.has_waiting(); });
  take_over(options.directory, *read_owner(FileSystem::real(), options.directory));
  files.let_go();
  eventually([&] { return mirror->status().consecutive_failures == 1; });
  EXPECT_THAT(mirror->status().last_error, HasSubstr(options.directory + " now has another chief"));
  EXPECT_THAT(steps(), IsEmpty());
  std::filesystem::remove(owner_path(options.directory));
  eventually([&] {
    clock.advance(Seconds{10});
    return is_there(1);
  });
}

TEST_F(MirrorTest, WhatAKilledProcessLeftOfACopyGoesWithTheNextOne) {
  const std::string left = options.directory + "/.incoming/m-7.meta";
  std::filesystem::create_directories(directory_name(left));
  write_file_atomically(FileSystem::real(), left, "half");
  mirror_one(1);
  EXPECT_FALSE(FileSystem::real().exists(left));
}

TEST_F(MirrorTest, WhatACrashLeftBetweenDataAndIndexGoesToo) {
  const std::string incoming = options.directory + "/.incoming/m-7.index";
  std::filesystem::create_directories(directory_name(incoming));
  write_file_atomically(FileSystem::real(), incoming, "what was to be renamed last");
  for (const int step : {6, 7}) write_file_atomically(FileSystem::real(), data_path(mirrored(step), 0, 1), "data");
  mirror_one(1);
  EXPECT_FALSE(FileSystem::real().exists(incoming));
  EXPECT_FALSE(FileSystem::real().exists(data_path(mirrored(7), 0, 1)));
  EXPECT_TRUE(FileSystem::real().exists(data_path(mirrored(6), 0, 1))) << "nobody has announced it as unfinished";
}

TEST_F(MirrorTest, WhateverAKillLeftTheNextStartListsWhatIsThere) {
  options.lock.lock = false;
  options.max_to_keep = 2;
  for (int step = 1; step <= 2; ++step) mirror_one(step);
  const size_t before = files.operations().size();
  mirror_one(3);
  const int operations = static_cast<int>(files.operations().size() - before);
  for (int n = 0; n < operations; ++n) {
    std::filesystem::remove_all(options.directory);
    for (int step = 1; step <= 2; ++step) mirror_one(step);
    mirror_until_killed(3, n);
    mirror_one(4);
    EXPECT_EQ(listed(), steps()) << n;
    EXPECT_EQ(steps().size(), 2u) << n;
    EXPECT_TRUE(is_there(4)) << n;
    EXPECT_FALSE(FileSystem::real().exists(options.directory + "/checkpoint.unlisted")) << n;
  }
}

TEST_F(MirrorTest, WhateverFailedOnceTheNextCopyListsWhatIsThere) {
  options.lock.lock = false;
  options.max_to_keep = 2;
  const std::string third = save(3), fourth = save(4), fifth = save(5);
  int operations = 1;
  for (int n = 0; n < operations; ++n) {
    std::filesystem::remove_all(options.directory);
    for (int step = 1; step <= 2; ++step) mirror_one(step);
    const size_t before = files.operations().size();
    const auto mirror = this->mirror();
    files.fail_operation(n);
    mirror->add(third);
    eventually([&] { return mirror->status().consecutive_failures > 0 || !mirror->status().last_prefix.empty(); });
    mirror->add(fourth);
    eventually([&] {
      clock.advance(Seconds{10});
      return mirror->status().last_prefix == mirrored(4);
    });
    if (n == 0) operations = static_cast<int>(files.operations().size() - before);
    files.heal();
    mirror->add(fifth);  // with which deletions that failed are tried again
    eventually([&] { return mirror->status().last_prefix == mirrored(5); });
    EXPECT_EQ(listed(), steps()) << n;
    EXPECT_TRUE(is_there(5)) << n;
  }
}

TEST_F(MirrorTest, ACopyThatAKilledProcessHasNotListedIsListedAndFallsOutInItsTurn) {
  options.max_to_keep = 2;
  mirror_one(1);
  copy_checkpoint(save(2), mirrored(2), {});
  write_file_atomically(FileSystem::real(), options.directory + "/checkpoint.unlisted", "m-2\n");
  mirror_one(3);
  EXPECT_THAT(listed(), ElementsAre("m-2", "m-3"));
  EXPECT_THAT(steps(), ElementsAre("m-2", "m-3"));
  mirror_one(4);
  EXPECT_THAT(steps(), ElementsAre("m-3", "m-4"));
}

TEST_F(MirrorTest, HalfOfACopyInPlaceIsNotListedAndGoes) {
  options.renames = options.syncs = false;
  mirror_one(1);
  copy_checkpoint(save(2), mirrored(2), {});
  damage(mirrored(2));
  write_file_atomically(FileSystem::real(), options.directory + "/checkpoint.unlisted", "m-2\n");
  mirror_one(3);
  EXPECT_THAT(listed(), ElementsAre("m-1", "m-3"));
  EXPECT_THAT(steps(), ElementsAre("m-1", "m-3"));
}

TEST_F(MirrorTest, HalfOfACopyWhoseDataIsGoneGoes) {
  mirror_one(1);
  copy_unlisted(2);
  std::filesystem::remove(data_path(mirrored(2), 0, 1));
  mirror_one(3);
  EXPECT_THAT(listed(), ElementsAre("m-1", "m-3"));
  EXPECT_FALSE(FileSystem::real().exists(index_path(mirrored(2))));
}

TEST_F(MirrorTest, ACopyThatIsNotListedAndCannotBeReadStaysAndTheNextOneIsMade) {
  const LogRecorder log;
  options.lock.lock = false;  // the time passes faster than a heartbeat
  mirror_one(1);
  copy_unlisted(2);
  files.unreadable = data_path(mirrored(2), 0, 1);
  const auto mirror = this->mirror();
  mirror->add(save(3));
  eventually([&] {
    clock.advance(Seconds{10});
    return mirror->status().last_prefix == mirrored(3);
  });
  mirror->close();
  EXPECT_THAT(listed(), ElementsAre("m-1", "m-3"));
  EXPECT_THAT(steps(), ElementsAre("m-1", "m-2", "m-3"));
  EXPECT_FALSE(FileSystem::real().exists(note()));
  EXPECT_THAT(log.text(LogLevel::kWarning), AllOf(HasSubstr("may be left there, not listed"), HasSubstr("m-2.data-")));
}

TEST_F(MirrorTest, ANoteThatIsNoFileIsDoneWithout) {
  options.lock.lock = false;
  for (const bool is_pipe : {true, false}) {
    std::filesystem::remove_all(options.directory);
    mirror_one(1);
    if (is_pipe) {
      ASSERT_EQ(::mkfifo(note().c_str(), 0600), 0);
    } else {
      std::filesystem::create_directories(note() + "/of somebody");
    }
    const auto mirror = this->mirror();
    for (const int step : {2, 3}) {
      mirror->add(save(step));
      eventually([&] {
        clock.advance(Seconds{10});
        return mirror->status().last_prefix == mirrored(step);
      });
    }
    mirror->close();
    EXPECT_THAT(listed(), ElementsAre("m-1", "m-2", "m-3"));
    EXPECT_EQ(FileSystem::real().exists(note()), !is_pipe);
  }
}

TEST_F(MirrorTest, AFolderThatSomebodyPutAmongCopiesUnderWayIsToldOfAndStopsNoCopy) {
  const std::string theirs = options.directory + "/.incoming/theirs";
  for (const bool renames : {true, false}) {
    const LogRecorder log;
    std::filesystem::remove_all(options.directory);
    options.renames = renames;
    std::filesystem::create_directories(theirs);
    write_file_atomically(FileSystem::real(), theirs + "/notes", "precious");
    const auto mirror = this->mirror();
    for (const int step : {1, 2}) {
      mirror->add(save(step));
      eventually([&] { return mirror->status().last_prefix == mirrored(step); });
    }
    mirror->close();
    EXPECT_THAT(listed(), ElementsAre("m-1", "m-2")) << renames;
    EXPECT_EQ(read_file(FileSystem::real(), theirs + "/notes"), "precious") << renames;
    const std::string text = log.text(LogLevel::kWarning);
    EXPECT_THAT(text, AllOf(HasSubstr("move them elsewhere: " + theirs), HasSubstr("copies go on"))) << renames;
    EXPECT_EQ(text.find(theirs), text.rfind(theirs)) << "once";
  }
}

TEST_F(MirrorTest, OneThatIsClosedReadsNoMoreOfACopyThatIsNotListed) {
  options.end_timeout = Seconds{0.05};
  mirror_one(1);
  copy_unlisted(2);
  files.slow_to_open = data_path(mirrored(2), 0, 1);
  CheckpointMirror mirror(directory.path(), options, files);
  files.hold();
  mirror.add(save(3));
  eventually([&] { return files.has_waiting(); });
  mirror.close();
  files.let_go();
  eventually([&] { return !threads.have_not(); });
  EXPECT_THAT(listed(), ElementsAre("m-1"));
}

TEST_F(MirrorTest, WhatSomebodyElsePutThereIsNotListedAndStays) {
  options.max_to_keep = 1;
  mirror_one(1);
  copy_checkpoint(save(7), mirrored(7), {});
  write_file_atomically(FileSystem::real(), options.directory + "/checkpoint.unlisted", "m-7");  // half of its line
  for (int step = 8; step <= 9; ++step) mirror_one(step);
  EXPECT_THAT(listed(), ElementsAre("m-9"));
  EXPECT_THAT(steps(), ElementsAre("m-7", "m-9"));
}

TEST_F(MirrorTest, WhatItsStateFileNamesElsewhereIsNotDeleted) {
  const std::string precious = save(9);
  std::filesystem::create_directory(options.directory);
  write_file_atomically(FileSystem::real(), options.directory + "/checkpoint",
                        "model_checkpoint_path: \"m-1\"\n# being deleted: " + precious + "\n# being deleted: ../" +
                            base_name(directory.path()) + "/m-9\n");
  mirror_one(1);
  mirror_one(2);
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), precious));
}

TEST_F(MirrorTest, OfTheMirrorItselfNothingIsCopied) {
  mirror_one(1);
  const auto mirror = this->mirror();
  const size_t before = files.operations().size();
  mirror->add(mirrored(1));
  mirror->close();
  EXPECT_EQ(files.operations().size(), before);
}

TEST_F(MirrorTest, ThatIsTheDirectoryItselfIsRefused) {
  options.directory = directory.path() + "/.";
  EXPECT_THAT(error_of([&] { mirror(); }), HasSubstr("same directory"));
  const testing::TemporaryDirectory other;
  options.directory = other.file("link");
  std::filesystem::create_directory_symlink(directory.path(), options.directory);
  EXPECT_THAT(error_of([&] { mirror(); }), HasSubstr("same directory")) << "it would delete what is mirrored";
}

TEST_F(MirrorTest, WorksWhereNothingCanBeRenamedOrSynced) {
  options.renames = options.syncs = false;
  options.max_to_keep = 1;
  for (int step = 1; step <= 2; ++step) mirror_one(step);
  EXPECT_THAT(steps(), ElementsAre("m-2"));
  EXPECT_TRUE(is_there(2));
  EXPECT_THAT(files.operations(), Not(::testing::Contains(HasSubstr("rename"))));
}

TEST_F(MirrorTest, HasNoRoomForMoreThanItsDiskHas) {
  files.fail_writes_after(1500);
  const auto mirror = this->mirror();
  mirror->add(save(1));
  eventually([&] { return mirror->status().consecutive_failures == 1; });
  EXPECT_THAT(steps(), IsEmpty());
  files.heal();
  clock.advance(Seconds{10});
  eventually([&] { return is_there(1); });
}

TEST_F(MirrorTest, MakesRoomByItsOldest) {
  for (int step = 1; step <= 3; ++step) mirror_one(step);
  const auto mirror = this->mirror();
  files.fail_writes_after(1500);
  mirror->add(save(4));
  eventually([&] { return mirror->status().consecutive_failures == 1; });
  EXPECT_THAT(steps(), ElementsAre("m-2", "m-3"));
  files.heal();
  clock.advance(Seconds{10});
  eventually([&] { return is_there(4); });
  EXPECT_THAT(steps(), ElementsAre("m-2", "m-3", "m-4"));
}

}  // namespace
}  // namespace longhaul

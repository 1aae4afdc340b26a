#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/recovery/recovery_search.h"
#include "longhaul/train/sessions/session_manager_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A mirror that cannot be listed, or does not answer until it is let go.
class LameMirror : public testing::FaultyFileSystem {
 public:
  explicit LameMirror(std::string mirror) : mirror_(std::move(mirror)) {}
  bool is_directory(const std::string& path) override {
    while (hangs && path == mirror_) std::this_thread::sleep_for(Seconds{0.001});
    if (fails && path == mirror_) throw UnknownError("stat " + path + ": Stale file handle");
    return FaultyFileSystem::is_directory(path);
  }
  bool exists(const std::string& path) override {
    while (hangs && path.starts_with(mirror_)) std::this_thread::sleep_for(Seconds{0.001});
    return FaultyFileSystem::exists(path);
  }
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    while (hangs && path.starts_with(mirror_)) std::this_thread::sleep_for(Seconds{0.001});
    return FaultyFileSystem::open(path);
  }
  std::atomic<bool> hangs{false}, fails{false};

 private:
  const std::string mirror_;
};

// A chief that restarts with checkpoints of v = 1, 2 and 3 in its directory and in the mirror.
class MirrorRecovery : public SessionManagerTest {
 protected:
  MirrorRecovery() {
    for (int i = 1; i <= 3; ++i) {
      prefixes.push_back(save(static_cast<float>(i), i));
      mirrored.push_back(mirror.file(fmt::format("model-{}", i)));
      copy_checkpoint(prefixes.back(), mirrored.back(), {});
    }
    restart();
    prepare.mirror.directory = mirror.path();
    options.files = &files;
  }
  ~MirrorRecovery() override { files.hangs = false; }
  void lose(const std::string& prefix) { remove_checkpoint(FileSystem::real(), prefix); }
  void lose_all() {
    for (const std::string& name : FileSystem::real().list(directory.path())) {
      std::filesystem::remove(directory.file(name));
    }
  }
  float restored() { return value(*manager().prepare_session(prepare), v); }
  std::vector<std::string> corrupt(const testing::TemporaryDirectory& place) {
    std::vector<std::string> names;
    for (const std::string& prefix : corrupt_sets(FileSystem::real(), place.path())) names.push_back(base_name(prefix));
    return names;
  }

  testing::TemporaryDirectory mirror;
  LameMirror files{mirror.path()};
  std::vector<std::string> prefixes, mirrored;
  const ThreadsEnd searches;
};

TEST_F(MirrorRecovery, AFreshMachineRecoversFromTheMirror) {
  lose_all();
  const LogRecorder log;
  SessionManager sessions = manager();
  EXPECT_EQ(value(*sessions.prepare_session(prepare), v), 3);
  EXPECT_EQ(sessions.restored_from(), mirrored[2]);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("restored from the mirror"));
}

// As a kill between the copy and the list leaves it.
TEST_F(MirrorRecovery, TheNewestIsTakenThoughTheMirrorHasNotListedIt) {
  lose_all();
  const std::string state = mirror.file("checkpoint");
  write_file_atomically(FileSystem::real(), state, "model_checkpoint_path: \"model-2\"\n");
  std::filesystem::last_write_time(state, std::filesystem::last_write_time(state) - std::chrono::hours(1));
  write_file_atomically(FileSystem::real(), mirror.file("checkpoint.unlisted"), "model-3\n");
  SessionManager sessions = manager();
  EXPECT_EQ(value(*sessions.prepare_session(prepare), v), 3);
  EXPECT_EQ(sessions.restored_from(), mirrored[2]);
}

TEST_F(MirrorRecovery, AfterItTheDirectoryManagesItsOwnAlone) {
  lose_all();
  Saver restarted({.graph = &graph, .max_to_keep = 1, .name = "restarted"});
  prepare.saver = &restarted;
  const auto session = manager().prepare_session(prepare);
  for (int step = 4; step <= 5; ++step) restarted.save(*session, directory.file("model"), step);
  EXPECT_THAT(restarted.last_checkpoints(), ElementsAre(directory.file("model-5")));
  for (const std::string& prefix : mirrored) EXPECT_TRUE(checkpoint_exists(FileSystem::real(), prefix));
}

TEST_F(MirrorRecovery, OfTwoOfTheSameStepTheOneOfTheDirectoryIsTaken) {
  SessionManager sessions = manager();
  sessions.prepare_session(prepare);
  EXPECT_EQ(sessions.restored_from(), prefixes[2]);
}

TEST_F(MirrorRecovery, TheNewestIsTakenWhereverItIs) {
  lose(prefixes[2]);
  EXPECT_EQ(restored(), 3);
}

TEST_F(MirrorRecovery, ForADamagedOneItsCopyIsTaken) {
  const DirectoryLock lock(directory.path());
  damage(prefixes[2]);
  SessionManager sessions = manager();
  EXPECT_EQ(value(*sessions.prepare_session(prepare), v), 3);
  EXPECT_EQ(sessions.restored_from(), mirrored[2]);
  EXPECT_THAT(corrupt(directory), ElementsAre("model-3"));
  EXPECT_THAT(corrupt(mirror), IsEmpty());
}

TEST_F(MirrorRecovery, ADamagedCopyIsRenamedToo) {
  const DirectoryLock lock(directory.path());
  lose(prefixes[2]);
  damage(mirrored[2]);
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(corrupt(mirror), ElementsAre("model-3"));
}

TEST_F(MirrorRecovery, ADamagedCopyThatCannotBeRenamedIsPassedOver) {
  const DirectoryLock lock(directory.path());
  lose(prefixes[2]);
  damage(mirrored[2]);
  files.fail_operation(0, testing::FaultyFileSystem::Fault::kForGood);
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(corrupt(mirror), IsEmpty());
}

TEST_F(MirrorRecovery, ADamagedCopyInAMirrorThatIsAnothersNowStaysAndIsPassedOver) {
  const DirectoryLock lock(directory.path()), lost(mirror.path());
  lose(prefixes[2]);
  damage(mirrored[2]);
  OwnerRecord other = lost.owner();
  other.token = std::string(32, 'a');
  write_owner(FileSystem::real(), mirror.path(), other);
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(corrupt(mirror), IsEmpty());
  write_owner(FileSystem::real(), mirror.path(), lost.owner());
}

TEST_F(MirrorRecovery, WhatIsPassedOverIsPassedOverInTheMirrorToo) {
  options.skip_reason = [](const std::string& prefix) -> std::optional<std::string> {
    if (base_name(prefix) == "model-3") return "two runs died of it";
    return std::nullopt;
  };
  EXPECT_EQ(restored(), 2);
}

TEST_F(MirrorRecovery, AMirrorThatCannotBeSearchedIsLeftOut) {
  files.fails = true;
  const LogRecorder log;
  EXPECT_EQ(restored(), 3);
  EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr("is not searched"), HasSubstr("Stale file handle")));
}

TEST_F(MirrorRecovery, WithoutAnythingElseItIsNoReasonToStartAfresh) {
  lose_all();
  files.fails = true;
  EXPECT_THROW(restored(), UnavailableError);
  EXPECT_THAT(error_of([&] { restored(); }), AllOf(HasSubstr(mirror.path()), HasSubstr("Stale file handle")));
}

TEST_F(MirrorRecovery, AMirrorThatHangsIsWaitedForAsLongAsTheTimeout) {
  files.hangs = true;
  prepare.mirror.start_timeout = Seconds{0.05};
  const LogRecorder log;
  const Seconds start = Clock::real().now();
  EXPECT_EQ(restored(), 3);
  EXPECT_LT(Clock::real().now() - start, Seconds{20});
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("no answer within 0.05 s"));
  EXPECT_TRUE(searches.have_not()) << "it was left behind";
}

TEST_F(MirrorRecovery, AMirrorThatHangsIsWaitedForNoLongerThanAPreemptionLeavesThatComesMeanwhile) {
  testing::FakeClock standing;
  Deadline deadline(standing);
  files.hangs = true;
  prepare.mirror.start_timeout = Seconds{20};
  prepare.deadline = &deadline;
  std::thread preemption([&] {
    const Seconds end = Clock::real().now() + Seconds{20};
    while (!searches.have_not() && Clock::real().now() < end) std::this_thread::yield();
    deadline.bring_forward(Seconds{0});
  });
  const LogRecorder log;
  EXPECT_EQ(restored(), 3);
  preemption.join();
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("no answer in the time that a preemption leaves"));
}

TEST_F(MirrorRecovery, AMirrorThatIsNotThereYetHasNothing) {
  prepare.mirror.directory = mirror.file("none");
  EXPECT_EQ(restored(), 3);
  lose_all();
  restart();
  EXPECT_EQ(restored(), 2) << "as the model is initialised";
}

}  // namespace
}  // namespace longhaul

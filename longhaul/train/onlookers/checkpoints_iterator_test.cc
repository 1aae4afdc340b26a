#include "longhaul/train/onlookers/checkpoints_iterator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <semaphore>
#include <thread>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

static_assert(std::input_iterator<CheckpointsIterator::Position>);

// Stands still, and knows when somebody waits on it.
class StillClock : public testing::FakeClock {
 public:
  bool is_waited_for() { return waits_.try_acquire_for(std::chrono::minutes(1)); }  // false: nobody for a minute
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    note();
    FakeClock::wait_for(cond, mutex, timeout);
  }
  void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) override REQUIRES(mutex) {
    note();
    FakeClock::wait_until(cond, mutex, deadline);
  }

 private:
  void note() {
    if (!was_noted_.exchange(true)) waits_.release();
  }
  std::atomic<bool> was_noted_{false};
  std::binary_semaphore waits_{0};
};

class CheckpointsIteratorTest : public ::testing::Test {
 protected:
  std::string prefix(int step) const { return directory_.file("m-" + std::to_string(step)); }
  void save(int step) {
    fs::create_directories(directory_.path());
    BundleWriter writer(files_, prefix(step));
    writer.add("w", Tensor::scalar(static_cast<float>(step)));
    writer.finish();
    all_.push_back(prefix(step));
    write_checkpoint_state(files_, directory_.path(),
                           {.model_checkpoint_path = prefix(step), .all_model_checkpoint_paths = all_});
  }
  // A run of the training that has ended.
  void run_and_end(bool is_preempted = false) {
    const DirectoryLock lock(directory_.path());
    RunJournal journal(directory_.path());
    journal.begin();
    journal.ended(nullptr, false, 0, is_preempted);
  }
  CheckpointsIterator follow(CheckpointsIteratorOptions options = {}) {
    options.coord = coord_;
    return checkpoints_iterator(directory_.path(), options);
  }
  bool is_pinned(int step) {
    return read_reader_notes(files_, directory_.path(), Clock::real()).pinned.contains("m-" + std::to_string(step));
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  std::vector<std::string> all_;
  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
  Coordinator coord_{{.clock = &clock_}};
  // Whoever waits here is woken by a change, or in a minute by a stop: the clock stands still.
  StillClock still_;
  const Coordinator still_coord_{{.clock = &still_}};
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread rescue_{[this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    over_.wait_for(lock, stop, std::chrono::minutes(1), [] { return false; });
    still_coord_.request_stop();
  }};
};

TEST_F(CheckpointsIteratorTest, HandsOutTheNewestAndThenEachNewerOne) {
  save(1);
  save(2);
  CheckpointsIterator iterator = follow({.timeout = Seconds{5}});
  const NewCheckpoint* checkpoint = iterator.next();
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->prefix, prefix(2));
  EXPECT_EQ(checkpoint->step, 2);
  save(3);
  save(4);
  checkpoint = iterator.next();
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(static_cast<const std::string&>(*checkpoint), prefix(4));
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTimeout);
  save(5);
  EXPECT_EQ(iterator.next(), nullptr);
}

TEST_F(CheckpointsIteratorTest, EndsAfterTheLastCheckpointOfATrainingThatHasEnded) {
  save(1);
  run_and_end();
  std::vector<std::string> seen;
  for (const NewCheckpoint& checkpoint : follow()) seen.push_back(checkpoint);
  EXPECT_THAT(seen, ElementsAre(prefix(1)));
  CheckpointsIterator iterator = follow();
  EXPECT_NE(iterator.next(), nullptr);
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTrainingEnded);
}

TEST_F(CheckpointsIteratorTest, APreemptedTrainingIsWaitedFor) {
  save(1);
  run_and_end(/*is_preempted=*/true);
  CheckpointsIterator iterator = follow({.chief_timeout = Seconds{100}});
  EXPECT_NE(iterator.next(), nullptr);
  const Seconds before = clock_.now();
  const LogRecorder log;
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kNoChief);
  EXPECT_GE(clock_.now() - before, Seconds{100});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("no chief for 100 s"));
}

TEST_F(CheckpointsIteratorTest, SoIsOneThatIsKilled) {
  save(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto* lock = new DirectoryLock(directory_.path());
    RunJournal(directory_.path()).begin();
    ::_exit(lock == nullptr ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  CheckpointsIterator iterator = follow({.chief_timeout = Seconds{100}});
  EXPECT_NE(iterator.next(), nullptr);
  const LogRecorder log;
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kNoChief);
}

TEST_F(CheckpointsIteratorTest, AsLongAsThereIsAChiefOnlyTheTimeoutEndsAWait) {
  run_and_end();
  const DirectoryLock chief(directory_.path());  // the next run has begun
  CheckpointsIterator iterator = follow({.timeout = Seconds{1000}, .chief_timeout = Seconds{100}});
  const Seconds before = clock_.now();
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTimeout);
  EXPECT_GE(clock_.now() - before, Seconds{1000});
}

TEST_F(CheckpointsIteratorTest, AChiefElsewhereIsThereAsLongAsItsHeartbeatChanges) {
  OwnerRecord owner{.token = std::string(32, 'a'), .process = this_process(), .limit = 50};
  owner.process.boot_id = "of another machine";
  int beats = 0;
  const auto beat = [&] {
    owner.heartbeat += 1;
    write_owner(files_, directory_.path(), owner);
    return ++beats > 10;
  };
  beat();
  CheckpointsIterator iterator = follow({.timeout = Seconds{40}, .timeout_fn = beat, .chief_timeout = Seconds{100}});
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTimeout);
  EXPECT_EQ(beats, 11);
  CheckpointsIterator without = follow({.timeout = Seconds{1000}, .chief_timeout = Seconds{100}});
  EXPECT_EQ(without.next(), nullptr);
  EXPECT_EQ(without.ended_by(), IterationEnd::kNoChief);
}

TEST_F(CheckpointsIteratorTest, TheProgramDecidesAfterATimeout) {
  int calls = 0;
  const auto fn = [&] {
    if (++calls == 2) save(1);
    return calls == 4;
  };
  CheckpointsIterator iterator = follow({.timeout = Seconds{7}, .timeout_fn = fn});
  EXPECT_NE(iterator.next(), nullptr);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTimeout);
}

TEST_F(CheckpointsIteratorTest, TheIntervalIsKept) {
  save(1);
  CheckpointsIterator iterator = follow({.min_interval_secs = Seconds{300}, .timeout = Seconds{5}});
  EXPECT_NE(iterator.next(), nullptr);
  const Seconds before = clock_.now();
  save(2);
  EXPECT_NE(iterator.next(), nullptr);
  EXPECT_GE(clock_.now() - before, Seconds{300});
}

TEST_F(CheckpointsIteratorTest, ACheckpointIsPinnedUntilTheIteratorGoesOn) {
  save(1);
  {
    CheckpointsIterator iterator = follow({.timeout = Seconds{5}});
    const NewCheckpoint* checkpoint = iterator.next();
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_TRUE(checkpoint->is_pinned);
    EXPECT_TRUE(is_pinned(1));
    save(2);
    EXPECT_NE(iterator.next(), nullptr);
    EXPECT_FALSE(is_pinned(1));
    EXPECT_TRUE(is_pinned(2));
    EXPECT_EQ(iterator.next(), nullptr);
    EXPECT_FALSE(is_pinned(2));
    save(3);
  }
  {
    CheckpointsIterator iterator = follow({.pin_secs = Seconds{0}});
    EXPECT_FALSE(iterator.next()->is_pinned);
    EXPECT_FALSE(is_pinned(3));
  }
  {
    EXPECT_TRUE(follow().next()->is_pinned);
  }  // an iterator that is destroyed releases, too
  EXPECT_FALSE(is_pinned(3));
}

TEST_F(CheckpointsIteratorTest, WhereItCannotPinItSaysSoAndGoesOn) {
  save(1);
  write_file_atomically(files_, directory_.file(kReadersFolder), "a file");
  const LogRecorder log;
  CheckpointsIterator iterator = follow();
  const NewCheckpoint* checkpoint = iterator.next();
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_FALSE(checkpoint->is_pinned);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("m-1 cannot be pinned, and may be deleted"));
}

TEST_F(CheckpointsIteratorTest, OneThatIsBeingDeletedIsSkipped) {
  save(1);
  write_checkpoint_state(files_, directory_.path(),
                         {.model_checkpoint_path = prefix(1),
                          .all_model_checkpoint_paths = {prefix(1)},
                          .paths_marked_for_deletion = {prefix(1)}});
  const LogRecorder log;
  const auto fn = [&] {
    save(2);
    return false;
  };
  CheckpointsIterator iterator = follow({.timeout = Seconds{5}, .timeout_fn = fn});
  EXPECT_EQ(iterator.next()->prefix, prefix(2));
  EXPECT_THAT(log.text(), HasSubstr("m-1 was deleted before it could be pinned; going on to the next"));
}

TEST_F(CheckpointsIteratorTest, OneThatIsSavedAgainIsHandedOutAgain) {
  save(1);
  CheckpointsIterator iterator = follow({.timeout = Seconds{5}});
  EXPECT_NE(iterator.next(), nullptr);
  fs::last_write_time(index_path(prefix(1)), fs::last_write_time(index_path(prefix(1))) + std::chrono::seconds(9));
  EXPECT_NE(iterator.next(), nullptr);
  EXPECT_EQ(iterator.next(), nullptr);
}

TEST_F(CheckpointsIteratorTest, ADirectoryThatIsNotThereIsToldOfAndWaitedFor) {
  fs::remove_all(directory_.path());
  int timeouts = 0;
  const auto fn = [&] {
    if (++timeouts == 2) save(1);
    return timeouts > 2;
  };
  const LogRecorder log;
  CheckpointsIterator iterator = follow({.timeout = Seconds{30}, .timeout_fn = fn});
  EXPECT_NE(iterator.next(), nullptr);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("the directory, which does not exist"));
  CheckpointsIterator nobody =
      checkpoints_iterator(directory_.file("misspelt"), {.chief_timeout = Seconds{100}, .coord = coord_});
  EXPECT_EQ(nobody.next(), nullptr);
  EXPECT_EQ(nobody.ended_by(), IterationEnd::kNoChief);
}

TEST_F(CheckpointsIteratorTest, AStopEndsIt) {
  const Coordinator coord;  // real time
  CheckpointsIterator iterator = checkpoints_iterator(directory_.path(), {.coord = coord});
  std::thread stopper([&] { coord.request_stop(); });
  EXPECT_EQ(iterator.next(), nullptr);
  stopper.join();
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kStopped);
  save(1);
  EXPECT_EQ(checkpoints_iterator(directory_.path(), {.coord = coord}).next(), nullptr);
}

TEST_F(CheckpointsIteratorTest, ANewCheckpointWakesIt) {
  const DirectoryLock chief(directory_.path());
  CheckpointsIterator iterator = checkpoints_iterator(directory_.path(), {.coord = still_coord_});
  std::thread trainer([&] {
    EXPECT_TRUE(still_.is_waited_for());
    save(1);
  });
  EXPECT_NE(iterator.next(), nullptr);
  trainer.join();
}

TEST_F(CheckpointsIteratorTest, SoDoesTheDirectoryItself) {
  fs::remove_all(directory_.path());
  CheckpointsIterator iterator = checkpoints_iterator(directory_.path(), {.coord = still_coord_});
  std::thread trainer([&] {
    EXPECT_TRUE(still_.is_waited_for());
    save(1);
  });
  EXPECT_NE(iterator.next(), nullptr);
  trainer.join();
}

TEST_F(CheckpointsIteratorTest, AndSoDoesTheEndOfTheTraining) {
  save(1);
  auto chief = std::make_unique<DirectoryLock>(directory_.path());
  RunJournal journal(directory_.path());
  journal.begin();
  CheckpointsIterator iterator = checkpoints_iterator(directory_.path(), {.coord = still_coord_});
  EXPECT_NE(iterator.next(), nullptr);
  std::thread trainer([&] {
    EXPECT_TRUE(still_.is_waited_for());
    journal.ended();
    chief.reset();
  });
  EXPECT_EQ(iterator.next(), nullptr);
  EXPECT_EQ(iterator.ended_by(), IterationEnd::kTrainingEnded);
  trainer.join();
}

TEST_F(CheckpointsIteratorTest, ImpossibleTimesAreRefused) {
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(follow({.min_interval_secs = Seconds{wrong}}), InvalidArgumentError);
    EXPECT_THROW(follow({.timeout = Seconds{wrong}}), InvalidArgumentError);
    EXPECT_THROW(follow({.chief_timeout = Seconds{wrong}}), InvalidArgumentError);
    EXPECT_THROW(follow({.pin_secs = Seconds{wrong}}), InvalidArgumentError);
  }
  EXPECT_THROW(follow({.pin_secs = Seconds{24 * 3600 + 1}}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul

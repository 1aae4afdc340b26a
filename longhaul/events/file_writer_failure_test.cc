#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/io/files/working_directory_fixture.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/no_new_threads_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class FailingWrites : public ::testing::Test {
 protected:
  FailingWrites() {
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      MutexLock lock(messages_mutex_);
      if (level == LogLevel::kError) errors_.push_back(message);
      if (level == LogLevel::kWarning) warnings_.push_back(message);
    });
  }
  ~FailingWrites() override { set_log_sink(before_); }

  FileWriterOptions options() { return {.files = &files_, .clock = &clock_}; }
  std::string logdir() const { return directory_.path(); }
  std::vector<std::string> errors() {
    MutexLock lock(messages_mutex_);
    return errors_;
  }

  std::vector<std::string> warnings() {
    MutexLock lock(messages_mutex_);
    return warnings_;
  }

  // The steps of all events, in the order of the files; one that is in two files counts once.
  std::vector<int64_t> steps() {
    std::vector<int64_t> all;
    for (const auto& path : event_files(logdir())) {
      EventReader reader(path);
      while (auto event = reader.next())
        if (event->has_summary() && std::find(all.begin(), all.end(), event->step()) == all.end())
          all.push_back(event->step());
    }
    return all;
  }

  template <typename Condition>
  static void wait_until(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }

  testing::TemporaryDirectory directory_;
  testing::FaultyFileSystem files_;
  testing::FakeClock clock_;
  LogSink before_;
  Mutex messages_mutex_;
  std::vector<std::string> errors_, warnings_;
};

TEST_F(FailingWrites, AFullDiskIsReportedAndTheEventsAreTriedAgain) {  // unlike EV-7
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  writer.flush();
  files_.fail_writes_after(10);
  writer.add_scalar("t", 1, 2);
  EXPECT_THROW(writer.flush(), ResourceExhaustedError);
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("No space left")));
  EXPECT_THAT(writer.last_error(), HasSubstr("No space left"));

  files_.heal();
  writer.flush();
  writer.close();
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  EXPECT_EQ(writer.dropped_events(), 0u);
}

TEST_F(FailingWrites, ClosingOnAFullDiskEndsAndSaysWhatIsLost) {
  FileWriter writer(logdir(), options());
  files_.fail_writes_after(0);
  for (int i = 0; i < 7; ++i) writer.add_scalar("t", 1, i);
  try {
    writer.close();
    FAIL() << "no error";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("7 events dropped"));
  }
  EXPECT_EQ(writer.dropped_events(), 7u);
  EXPECT_TRUE(writer.is_closed());
  EXPECT_THAT(event_files(logdir()), IsEmpty());
  EXPECT_NO_THROW(writer.close());
}

class OddRemovals : public testing::FaultyFileSystem {
 public:
  void remove(const std::string&) override { throw 7; }
};

TEST_F(FailingWrites, AnErrorOfOddTypeWhileCleaningUpHidesNoOther) {
  OddRemovals odd;
  odd.fail_writes_after(0);
  FileWriter writer(logdir(), {.files = &odd, .clock = &clock_});
  writer.add_scalar("t", 1, 1);
  EXPECT_THROW(writer.flush(), ResourceExhaustedError);
  odd.heal();
  EXPECT_NO_THROW(writer.flush());
}

TEST_F(FailingWrites, OneWhoseThreadCannotBeStartedStaysClosedAndMayBeReopenedLater) {
  FileWriter writer(logdir(), options());
  writer.close();
  {
    const NoNewThreads none;
    EXPECT_ANY_THROW(writer.reopen());
  }
  EXPECT_TRUE(writer.is_closed());
  EXPECT_NO_THROW(writer.flush()) << "nobody is waited for";
  EXPECT_NO_THROW(writer.close());
  writer.reopen();
  writer.add_summary(proto::Summary(), 7);
  writer.close();
  EXPECT_THAT(steps(), ElementsAre(7));
}

TEST_F(FailingWrites, ADiskThatStaysFullDoesNotFillWithFiles) {
  FileWriter writer(logdir(), options());
  files_.fail_writes_after(50);  // room for the version record
  writer.add_scalar("t", 1);
  for (int i = 0; i < 5; ++i) EXPECT_THROW(writer.flush(), ResourceExhaustedError);
  EXPECT_THAT(event_files(logdir()), IsEmpty());
  EXPECT_THROW(writer.close(), ResourceExhaustedError);
}

TEST_F(FailingWrites, ProducersAreNotHeldUpWhileTheDiskIsFull) {
  auto small = options();
  small.max_queue = 10;
  FileWriter writer(logdir(), small);
  files_.fail_writes_after(0);
  writer.add_scalar("t", 1, 0);
  EXPECT_THROW(writer.flush(), ResourceExhaustedError);
  for (int i = 1; i <= 100; ++i) writer.add_scalar("t", 1, i);
  EXPECT_EQ(writer.dropped_events(), 90u);

  files_.heal();
  EXPECT_THROW(writer.close(), DataLossError);
  EXPECT_THAT(steps(), SizeIs(11));
}

TEST_F(FailingWrites, ANewFileIsTriedAfterRetrySecs) {
  FileWriter writer(logdir(), options());
  files_.fail_operation(1, testing::FaultyFileSystem::Fault::kForGood);
  writer.add_scalar("t", 1, 1);
  wait_until([&] { return !writer.last_error().empty(); });
  files_.heal();
  EXPECT_THAT(steps(), IsEmpty());
  wait_until([&] {
    clock_.advance(Seconds(5));
    return steps().size() == 1;
  });
  EXPECT_EQ(writer.dropped_events(), 0u);
}

TEST_F(FailingWrites, AnErrorThatRepeatsIsLoggedOnce) {
  FileWriter writer(logdir(), options());
  files_.fail_writes_after(0);
  writer.add_scalar("t", 1, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(writer.flush(), ResourceExhaustedError);
    clock_.advance(Seconds{60});  // the next file has another name
  }
  EXPECT_THAT(errors(), SizeIs(1));
  EXPECT_THROW(writer.close(), ResourceExhaustedError);
}

TEST_F(FailingWrites, ThatItWorksAgainIsSaidWithWhatFailedMeanwhile) {
  auto small = options();
  small.max_queue = 2;
  FileWriter writer(logdir(), small);
  for (const int full : {1, 2}) {
    files_.fail_writes_after(0);
    writer.add_scalar("t", 1, 1);
    EXPECT_THROW(writer.flush(), ResourceExhaustedError);
    for (int i = 0; i < 5; ++i) writer.add_scalar("t", 1, 1);
    EXPECT_THROW(writer.flush(), ResourceExhaustedError);
    files_.heal();
    EXPECT_NO_THROW(writer.flush());
    EXPECT_THAT(warnings(), SizeIs(full));
    EXPECT_THAT(warnings().back(), ContainsRegex("writing again after [2-9] failed attempts; 3 events were "))
        << "two that are asked for, and those of the writer's own";
    EXPECT_THAT(errors(), SizeIs(2 * full)) << "the failure, and that no more fit into memory";
  }
  EXPECT_THROW(writer.close(), DataLossError);
}

TEST_F(FailingWrites, ADeletedFileIsFollowedByANewOne) {  // unlike EV-5
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  writer.flush();
  EXPECT_THAT(steps(), ElementsAre(1));
  files_.remove(event_files(logdir())[0]);
  writer.add_scalar("t", 1, 2);
  EXPECT_THROW(writer.flush(), NotFoundError);
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("was deleted")));
  EXPECT_NO_THROW(writer.flush());
  EXPECT_THAT(steps(), ElementsAre(2));
  files_.remove(event_files(logdir())[0]);
  writer.add_scalar("t", 1, 3);
  EXPECT_NO_THROW(writer.close());
  EXPECT_THAT(steps(), ElementsAre(3));
}

// What is made again may be on another disk, where one was unmounted.
TEST_F(FailingWrites, ADeletedDirectoryIsReportedOnceAndNotMadeAgain) {  // unlike EV-5
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  writer.flush();
  files_.remove(event_files(logdir())[0]);
  files_.remove(logdir());
  writer.add_scalar("t", 1, 2);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(writer.flush(), NotFoundError);
  EXPECT_FALSE(files_.exists(logdir()));
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("was deleted")));
  files_.make_directories(logdir());
  writer.flush();
  writer.close();
  EXPECT_THAT(steps(), ElementsAre(2));
}

TEST_F(FailingWrites, OnceADeletedDirectoryIsThereAgainLoggingGoesOnByItself) {
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  writer.flush();
  files_.remove(event_files(logdir())[0]);
  files_.remove(logdir());
  writer.add_scalar("t", 1, 2);
  wait_until([&] {
    clock_.advance(Seconds(60));
    return !writer.last_error().empty();
  });
  files_.make_directories(logdir());
  wait_until([&] {
    clock_.advance(Seconds(60));
    return !steps().empty();
  });
  EXPECT_THAT(steps(), ElementsAre(2));
  EXPECT_EQ(writer.dropped_events(), 0u);
}

TEST_F(FailingWrites, APluginsFileMakesNoDirectoryThatWasDeleted) {
  FileWriter writer(logdir(), options());
  files_.remove(logdir());
  EXPECT_THROW(writer.add_plugin_asset("projector", "config", "x"), NotFoundError);
  EXPECT_FALSE(files_.exists(logdir()));
}

// The logdir of a chief, which another one may have by now, or which may have been unmounted.
class LockedLogdir : public FailingWrites {
 protected:
  LockedLogdir() {
    files_.make_directories(locked_);
    lock_ = std::make_unique<DirectoryLock>(locked_, DirectoryLockOptions{.files = &files_, .clock = &clock_});
  }
  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> all = files_.list(directory);
    std::erase_if(all, [](const std::string& name) { return name.find("tfevents") == name.npos; });
    return all;
  }

  const std::string locked_ = directory_.file("locked"), elsewhere_ = directory_.file("elsewhere");
  std::unique_ptr<DirectoryLock> lock_;
};

TEST_F(LockedLogdir, NothingIsWrittenIntoAnotherOneOfItsName) {
  FileWriter writer(locked_, options()), below(join_path(locked_, "eval"), options());
  std::filesystem::rename(locked_, elsewhere_);
  files_.make_directories(locked_);
  for (FileWriter* each : {&writer, &below}) {
    each->add_scalar("t", 1, 1);
    EXPECT_THROW(each->flush(), DirectoryAwayError);
    EXPECT_THROW(each->add_plugin_asset("projector", "config", "x"), DirectoryAwayError);
  }
  EXPECT_THROW(FileWriter(join_path(locked_, "late"), options()), DirectoryAwayError);
  EXPECT_THAT(files_.list(locked_), IsEmpty());
  files_.remove(locked_);
  std::filesystem::rename(elsewhere_, locked_);
  for (FileWriter* each : {&writer, &below}) EXPECT_NO_THROW(each->close());
  EXPECT_THAT(names(locked_), SizeIs(1));
  EXPECT_THAT(names(join_path(locked_, "eval")), SizeIs(1));
}

TEST_F(LockedLogdir, WhoHasLostItWritesNothingMoreThere) {
  FileWriter lazy(locked_, options()), open(locked_, options());
  open.add_scalar("t", 1, 1);
  open.flush();
  OwnerRecord other = lock_->owner();
  other.token = std::string(32, 'e');
  other.process.host = "far-away";
  write_owner(files_, locked_, other);
  const std::string only = join_path(locked_, names(locked_).at(0));
  const std::string before = read_file(files_, only);
  for (FileWriter* each : {&lazy, &open}) {
    each->add_scalar("t", 1, 2);
    EXPECT_THROW(each->flush(), FailedPreconditionError);
    EXPECT_THROW(each->close(), FailedPreconditionError);
  }
  EXPECT_THAT(names(locked_), SizeIs(1));
  EXPECT_EQ(read_file(files_, only), before);
}

TEST_F(FailingWrites, ARelativeDirectoryIsThatOfTheWorkingDirectoryOfTheBeginning) {
  const testing::TemporaryDirectory home, other;
  std::unique_ptr<FileWriter> writer;
  {
    const WorkingDirectory there(home.path());
    writer = std::make_unique<FileWriter>("runs", options());
  }
  const WorkingDirectory there(other.path());
  writer->add_scalar("t", 1, 1);
  writer->close();
  EXPECT_THAT(event_files(home.file("runs")), SizeIs(1));
  EXPECT_THAT(files_.list(other.path()), IsEmpty());
}

// Writes three events while the n-th operation fails, and returns how many operations there were.
size_t write_three(const std::string& logdir, Clock& clock, int n, bool* reported) {
  testing::FaultyFileSystem files;
  FileWriter writer(logdir, {.files = &files, .clock = &clock});
  const size_t before = files.operations().size();
  files.fail_operation(n);
  auto call = [&](auto method) {
    try {
      (writer.*method)();
    } catch (const UnavailableError&) {
      *reported = true;
    }
  };
  writer.add_scalar("t", 1, 1);
  call(&FileWriter::flush);
  writer.add_scalar("t", 1, 2);
  writer.add_scalar("t", 1, 3);
  call(&FileWriter::close);
  EXPECT_EQ(writer.dropped_events(), 0u);
  return files.operations().size() - before;
}

TEST_F(FailingWrites, WhateverOperationFailsNothingIsLostAndItIsReported) {
  bool reported = false;
  const size_t operations = write_three(logdir(), clock_, 1000, &reported);
  EXPECT_FALSE(reported);
  EXPECT_GE(operations, 10u);
  for (size_t n = 0; n < operations; ++n) {
    for (const auto& path : event_files(logdir())) files_.remove(path);
    const size_t errors_before = errors().size();
    reported = false;
    write_three(logdir(), clock_, static_cast<int>(n), &reported);
    EXPECT_THAT(steps(), UnorderedElementsAre(1, 2, 3)) << n;
    EXPECT_TRUE(reported || errors().size() > errors_before) << n;
  }
}

// Lets appends through only while it is open.
class GatedFiles : public testing::FaultyFileSystem {
 public:
  class File : public WritableFile {
   public:
    File(GatedFiles& files, std::unique_ptr<WritableFile> inner) : files_(files), inner_(std::move(inner)) {}
    void append(std::string_view data) override {
      files_.is_reached = true;
      while (!files_.is_open) std::this_thread::yield();
      inner_->append(data);
    }
    void flush() override { inner_->flush(); }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

   private:
    GatedFiles& files_;
    std::unique_ptr<WritableFile> inner_;
  };
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    return std::make_unique<File>(*this, FaultyFileSystem::create(path, if_exists));
  }
  std::atomic<bool> is_open = false, is_reached = false;
};

class WatchedClock : public testing::FakeClock {
 public:
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    ++waits;
    FakeClock::wait_for(cond, mutex, timeout);
  }
  std::atomic<int> waits = 0;
};

TEST_F(FailingWrites, ALogMessageNeverWaitsForASlowDisk) {
  GatedFiles gated;
  auto small = options();
  small.files = &gated;
  small.max_queue = 1;
  FileWriter writer(logdir(), small);
  writer.add_scalar("t", 1, 1);
  wait_until([&] { return gated.is_reached.load(); });
  for (int i = 0; i < 3; ++i) writer.add_log_message(proto::LogMessage::WARN, "text");
  EXPECT_EQ(writer.dropped_events(), 2u);
  gated.is_open = true;
  EXPECT_THROW(writer.close(), DataLossError);
}

TEST_F(FailingWrites, ASlowDiskHoldsProducersUpAtTheLimit) {
  constexpr int kEvents = 1000, kLimit = 10;
  GatedFiles gated;
  WatchedClock clock;
  auto small = options();
  small.files = &gated;
  small.clock = &clock;
  small.max_queue = kLimit;
  FileWriter writer(logdir(), small);
  std::atomic<int> added = 0;
  std::thread producer([&] {
    for (int i = 1; i <= kEvents; ++i, ++added) writer.add_scalar("t", 1, i);
  });
  wait_until([&] { return gated.is_reached.load(); });
  const int waits = clock.waits;
  wait_until([&] { return clock.waits > waits + 1; });  // the writer is in the file: who waits is the producer
  EXPECT_LE(added, 2 * kLimit);
  gated.is_open = true;
  producer.join();
  writer.close();
  EXPECT_THAT(steps(), SizeIs(kEvents));
}

}  // namespace
}  // namespace longhaul

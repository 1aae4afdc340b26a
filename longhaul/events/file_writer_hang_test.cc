// Event files on a file system that hangs: whoever waits gives up in time and says so, and what was left behind goes on
// once the file system answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <limits>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/hanging_file_system_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using At = testing::HangingFileSystem::At;

// Counts the waits on it.
class CountingClock : public testing::FakeClock {
 public:
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    ++waits;
    FakeClock::wait_for(cond, mutex, timeout);
  }
  std::atomic<int> waits{0};
};

// One on which a wait is ended by a notification, and otherwise so late that the test has failed.
class SleepingClock : public CountingClock {
 public:
  void wait_for(CondVar& cond, Mutex& mutex, Seconds) override REQUIRES(mutex) {
    constexpr Seconds kTooLong{60};
    ++waits;
    cond.wait_for(mutex, kTooLong);
  }
};

class HangingWrites : public ::testing::Test {
 protected:
  HangingWrites() {
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      MutexLock lock(messages_mutex_);
      if (level == LogLevel::kError) errors_.push_back(message);
      if (level == LogLevel::kWarning) warnings_.push_back(message);
    });
  }
  ~HangingWrites() override {
    files_.let_go();
    wait_for_threads();
    set_log_sink(before_);
  }

  std::unique_ptr<FileWriter> make_writer(size_t max_queue = 1000) {
    return std::make_unique<FileWriter>(directory_.path(),
                                        FileWriterOptions{.max_queue = max_queue, .files = &files_, .clock = &clock_});
  }
  // One that has a file with an event of step 1, and where whatever comes next hangs.
  std::unique_ptr<FileWriter> make_hanging_writer(At at) {
    auto writer = make_writer();
    writer->add_scalar("t", 1, 1);
    writer->flush();
    files_.hang(at);
    return writer;
  }
  std::vector<std::string> errors() {
    MutexLock lock(messages_mutex_);
    return errors_;
  }
  std::vector<std::string> warnings() {
    MutexLock lock(messages_mutex_);
    return warnings_;
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> all;
    for (const auto& path : event_files(directory_.path())) {
      EventReader reader(path);
      while (auto event = reader.next())
        if (event->has_summary()) all.push_back(event->step());
    }
    return all;
  }

  template <typename Condition>
  static void eventually(const Condition& condition) {
    const Seconds end = Clock::real().now() + Seconds{20};
    bool holds = condition();
    for (; !holds && Clock::real().now() < end; holds = condition()) std::this_thread::yield();
    EXPECT_TRUE(holds);
  }
  void wait_for_threads() {
    eventually([&] { return !threads_end_.have_not(); });
  }
  // Somebody has looked at the time, and waits on.
  void wait_for_a_look() {
    const int before = clock_.waits;
    eventually([&] { return clock_.waits > before + 1; });
  }
  // Once somebody hangs: `call` waits for so long on the clock, and no longer. Returns the error that it throws.
  template <typename Call>
  std::string error_after(Seconds time, const Call& call) {
    constexpr Seconds kALittle{0.5};
    auto error = std::async(std::launch::async, [&] {
      try {
        call();
        return std::string();
      } catch (const UnavailableError& hang) {
        return std::string(hang.what());
      }
    });
    EXPECT_TRUE(files_.comes_to_hang());
    wait_for_a_look();
    while_it_hangs_();
    wait_for_a_look();
    clock_.advance(time - kALittle);
    wait_for_a_look();
    EXPECT_NE(error.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it gave up too early";
    clock_.advance(2 * kALittle);
    EXPECT_EQ(error.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    if (error.wait_for(std::chrono::seconds(0)) != std::future_status::ready) files_.let_go();
    return error.get();
  }

  testing::TemporaryDirectory directory_;
  testing::HangingFileSystem files_;
  CountingClock clock_;
  SleepingClock sleeping_;
  Deadline deadline_{clock_};
  std::function<void()> while_it_hangs_ = [] {};
  LogSink before_;
  Mutex messages_mutex_;
  std::vector<std::string> errors_, warnings_;
  const ThreadsEnd threads_end_;
};

TEST_F(HangingWrites, AFlushGivesUpAndSaysWhatHangs) {
  const auto writer = make_hanging_writer(At::kAppend);
  writer->add_scalar("t", 1, 2);
  const std::string error = error_after(Seconds{60}, [&] { writer->flush(); });
  EXPECT_THAT(error, AllOf(HasSubstr("1 events may be missing"), HasSubstr("writing to " + directory_.path()),
                           HasSubstr("has taken 60.5 s")));
  EXPECT_THAT(errors(), ElementsAre(HasSubstr(error)));
  EXPECT_THROW(writer->flush(), UnavailableError) << "at once";
  EXPECT_THAT(errors(), SizeIs(1)) << "it is known";

  files_.let_go();
  eventually([&] { return error_of([&] { writer->flush(); }).empty(); });
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  EXPECT_FALSE(writer->is_closed());
  EXPECT_NO_THROW(writer->close());
}

TEST_F(HangingWrites, TheNextHangIsToldAgain) {
  const auto writer = make_hanging_writer(At::kAppend);
  for (const size_t hang : {1, 2}) {
    files_.hang(At::kAppend);
    writer->add_scalar("t", 1, 2);
    error_after(Seconds{60}, [&] { writer->flush(); });
    EXPECT_THAT(errors(), SizeIs(hang));
    files_.let_go();
    eventually([&] { return error_of([&] { writer->flush(); }).empty(); });
  }
}

TEST_F(HangingWrites, AFlushLeavesHalfOfADeadlineThatIsSetMeanwhile) {
  const auto writer = make_hanging_writer(At::kAppend);
  writer->add_scalar("t", 1, 2);
  while_it_hangs_ = [&] { deadline_.bring_forward(Seconds{30}); };
  const std::string error = error_after(Seconds{15}, [&] { writer->flush_before(&deadline_); });
  EXPECT_THAT(error, HasSubstr("has taken 15.5 s"));
}

TEST_F(HangingWrites, AllWhoWaitAreWokenWhenOneGivesUp) {
  Deadline deadline(sleeping_);
  FileWriter writer(directory_.path(), {.files = &files_, .clock = &sleeping_});
  files_.hang(At::kAppend);
  writer.add_scalar("t", 1, 1);
  EXPECT_TRUE(files_.comes_to_hang());
  const auto flush = [&](const Deadline* limit) {
    const int before = sleeping_.waits;
    auto error = std::async(std::launch::async, [&writer, limit] {
      return error_of<UnavailableError>([&] { writer.flush_before(limit); });
    });
    eventually([&] { return sleeping_.waits > before; });
    return error;
  };
  auto patient = flush(nullptr), hurried = flush(&deadline);
  sleeping_.advance(Seconds{10});
  deadline.bring_forward(Seconds{0});
  for (auto* error : {&hurried, &patient}) {
    EXPECT_EQ(error->wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
  files_.let_go();
  EXPECT_THAT(hurried.get(), HasSubstr("1 events may be missing"));
  EXPECT_THAT(patient.get(), HasSubstr("1 events may be missing"));
  eventually([&] { return error_of([&] { writer.flush(); }).empty(); });
}

class TwoWhoClose : public HangingWrites {
 protected:
  // Returns its error, once it waits.
  template <typename Call>
  std::future<std::string> waits_in(const Call& call) {
    const int before = sleeping_.waits;
    auto error = std::async(std::launch::async, [call] { return error_of<UnavailableError>(call); });
    eventually([&] { return sleeping_.waits > before; });
    return error;
  }
  // Of one who waits for another one, whose deadline comes while the other one's has not.
  std::string error_at_deadline(FileWriter& writer) {
    auto error = waits_in([&writer, this] { writer.close_before(&limit_); });
    sleeping_.advance(Seconds{10});
    limit_.bring_forward(Seconds{0});
    EXPECT_EQ(error.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    if (error.wait_for(std::chrono::seconds(0)) != std::future_status::ready) files_.let_go();
    return error.get();
  }
  Deadline limit_{sleeping_};
};

TEST_F(TwoWhoClose, TheSecondWaitsNoLongerThanItMay) {
  FileWriter writer(directory_.path(), {.files = &files_, .clock = &sleeping_});
  files_.hang(At::kAppend);
  writer.add_scalar("t", 1, 1);
  EXPECT_TRUE(files_.comes_to_hang());
  auto first = waits_in([&writer] { writer.close(); });
  EXPECT_THAT(error_at_deadline(writer), AllOf(HasSubstr("another thread's close()"), HasSubstr("has taken 10.0 s")));
  EXPECT_EQ(first.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it is known to hang";
  files_.let_go();
  EXPECT_THAT(first.get(), HasSubstr("is left behind"));
  EXPECT_NO_THROW(writer.close());
}

TEST_F(TwoWhoClose, NorForOneWhoReopens) {
  FileWriter writer(directory_.path(), {.filename_suffix = ".s", .files = &files_, .clock = &sleeping_});
  writer.close();
  files_.hang(At::kCreate);
  auto reopened = std::async(std::launch::async, [&writer] { writer.reopen(); });
  EXPECT_TRUE(files_.comes_to_hang());
  EXPECT_THAT(error_at_deadline(writer),
              AllOf(HasSubstr("reopen() still waits"), HasSubstr("creating an event file in ")));
  files_.let_go();
  EXPECT_NO_THROW(reopened.get());
  EXPECT_FALSE(writer.is_closed());
  writer.add_scalar("t", 1, 3);
  EXPECT_NO_THROW(writer.close());
  EXPECT_THAT(steps(), ElementsAre(3));
}

TEST_F(TwoWhoClose, TheSecondDoesNothingIfTheFirstIsDone) {
  FileWriter writer(directory_.path(), {.files = &files_, .clock = &sleeping_});
  files_.hang(At::kAppend);
  writer.add_scalar("t", 1, 1);
  EXPECT_TRUE(files_.comes_to_hang());
  auto first = waits_in([&writer] { writer.close(); });
  auto second = waits_in([&writer] { writer.close(); });
  files_.let_go();
  EXPECT_THAT(first.get(), IsEmpty());
  EXPECT_THAT(second.get(), IsEmpty());
  EXPECT_THAT(steps(), ElementsAre(1));
}

// With the writer's thread, which would otherwise have gone on.
TEST_F(HangingWrites, AStopOfTheProcessIsNoHang) {
  auto writer = make_hanging_writer(At::kAppend);
  writer->add_scalar("t", 1, 2);
  while_it_hangs_ = [&] { clock_.advance(Seconds{1000}); };
  EXPECT_THAT(error_after(Seconds{60}, [&] { writer->flush(); }), HasSubstr("has taken 60.5 s"));
}

TEST_F(HangingWrites, AfterADeadlineADiskThatWorksStillGetsItsTime) {
  const auto writer = make_writer();
  deadline_.bring_forward(Seconds{-5});
  writer->add_scalar("t", 1, 1);
  EXPECT_NO_THROW(writer->flush_before(&deadline_));
  writer->add_scalar("t", 1, 2);
  EXPECT_NO_THROW(writer->close_before(&deadline_));
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

// Each append takes longer than half of hang_secs.
class SlowFiles : public testing::FaultyFileSystem {
 public:
  explicit SlowFiles(testing::FakeClock& clock) : clock_(clock) {}
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    return std::make_unique<File>(clock_, FaultyFileSystem::create(path, if_exists));
  }

 private:
  struct File : WritableFile {
    File(testing::FakeClock& clock, std::unique_ptr<WritableFile> inner) : clock_(clock), inner_(std::move(inner)) {}
    void append(std::string_view data) override {
      clock_.advance(Seconds{40});
      inner_->append(data);
    }
    void flush() override { inner_->flush(); }
    void sync() override { inner_->sync(); }
    void close() override { inner_->close(); }

    testing::FakeClock& clock_;
    const std::unique_ptr<WritableFile> inner_;
  };
  testing::FakeClock& clock_;
};

TEST_F(HangingWrites, ASlowDiskIsWaitedForAsLongAsItGetsOn) {
  SlowFiles slow(clock_);
  const Seconds start = clock_.now();
  FileWriter writer(directory_.path(), {.files = &slow, .clock = &clock_});
  writer.add_graph(std::string(size_t{5} << 20, 'x'));
  writer.add_scalar("t", 1, 7);
  EXPECT_NO_THROW(writer.close());
  EXPECT_GT(clock_.now() - start, Seconds{200}) << "so many hang_secs";
  EXPECT_THAT(steps(), ElementsAre(7));
  EXPECT_THAT(errors(), IsEmpty());
}

class HangingClose : public HangingWrites, public ::testing::WithParamInterface<At> {};

INSTANTIATE_TEST_SUITE_P(At, HangingClose,
                         ::testing::Values(At::kExists, At::kAppend, At::kFlush, At::kSync, At::kClose,
                                           At::kSyncDirectory));

TEST_P(HangingClose, LeavesTheThreadBehindWhichWritesTheRestLater) {
  auto writer = make_hanging_writer(GetParam());
  writer->add_scalar("t", 1, 2);
  const std::string error = error_after(Seconds{60}, [&] { writer->close(); });
  EXPECT_THAT(error, AllOf(HasSubstr(directory_.path()), HasSubstr("lh-events is left behind")));
  EXPECT_TRUE(writer->is_closed());
  EXPECT_NO_THROW(writer->close()) << "a second one does nothing";
  writer.reset();
  EXPECT_TRUE(threads_end_.have_not());
  files_.let_go();
  wait_for_threads();
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("the file system works again")));
}

TEST_P(HangingClose, LeavesHalfOfADeadline) {
  auto writer = make_hanging_writer(GetParam());
  writer->add_scalar("t", 1, 2);
  deadline_.bring_forward(Seconds{10});
  EXPECT_THAT(error_after(Seconds{5}, [&] { writer->close_before(&deadline_); }), HasSubstr("is left behind"));
}

TEST_P(HangingClose, LeftByTheDestructorTooAndLogged) {
  auto writer = make_hanging_writer(GetParam());
  writer->add_scalar("t", 1, 2);
  EXPECT_THAT(error_after(Seconds{60}, [&] { writer.reset(); }), IsEmpty());
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("lh-events is left behind")));
  files_.let_go();
  wait_for_threads();
  EXPECT_THAT(steps(), ElementsAre(1, 2));
}

class HangingOpen : public HangingWrites, public ::testing::WithParamInterface<At> {};

INSTANTIATE_TEST_SUITE_P(At, HangingOpen, ::testing::Values(At::kList, At::kCreate, At::kAppend));

TEST_P(HangingOpen, IsLeftBehindAsWell) {
  auto writer = make_writer();
  files_.hang(GetParam());
  writer->add_scalar("t", 1, 1);
  EXPECT_THAT(error_after(Seconds{60}, [&] { writer->close(); }), HasSubstr("creating an event file in "));
  writer.reset();
  files_.let_go();
  wait_for_threads();
  EXPECT_THAT(steps(), ElementsAre(1));
}

TEST_F(HangingWrites, WhatWasLeftBehindMakesNoNewFile) {
  auto writer = make_hanging_writer(At::kAppend);
  writer->add_scalar("t", 1, 2);
  error_after(Seconds{60}, [&] { writer.reset(); });
  files_.fail_operation(0);
  files_.let_go();
  wait_for_threads();
  EXPECT_THAT(steps(), ElementsAre(1));
  EXPECT_THAT(event_files(directory_.path()), SizeIs(1));
  EXPECT_THAT(errors().back(), AllOf(HasSubstr("1 events are lost"), HasSubstr("no new file is made")));
}

TEST_F(HangingWrites, AfterAFlushThatGaveUpNobodyWaitsAgain) {
  auto writer = make_hanging_writer(At::kAppend);
  writer->add_scalar("t", 1, 2);
  deadline_.bring_forward(Seconds{10});
  error_after(Seconds{5}, [&] { writer->flush_before(&deadline_); });
  EXPECT_THROW(writer->close(), UnavailableError) << "without time passing";
  writer.reset();
}

TEST_F(HangingWrites, ReopenedTheThreadThatWasLeftBehindGoesOn) {
  const auto writer = make_hanging_writer(At::kSync);
  writer->add_scalar("t", 1, 2);
  error_after(Seconds{60}, [&] { writer->close(); });
  const int threads = NamedThread::running();
  writer->reopen();
  EXPECT_EQ(NamedThread::running(), threads) << "no second one that would hang, too";
  EXPECT_FALSE(writer->is_closed());
  writer->add_scalar("t", 1, 3);
  files_.let_go();
  eventually([&] { return error_of([&] { writer->flush(); }).empty(); });
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
  EXPECT_NO_THROW(writer->close());
  writer->reopen();
  writer->add_scalar("t", 1, 4);
  EXPECT_NO_THROW(writer->close());
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
}

TEST_F(HangingWrites, ReopenedOnADiskThatStillHangsItIsClosedAtOnce) {
  auto writer = make_hanging_writer(At::kSync);
  error_after(Seconds{60}, [&] { writer->close(); });
  writer->reopen();
  writer->add_scalar("t", 1, 2);
  EXPECT_THROW(writer->close(), UnavailableError);
  writer.reset();
}

TEST_F(HangingWrites, WhoAddsToAFullQueueIsNotHeldUpForEver) {
  auto writer = make_writer(/*max_queue=*/2);
  files_.hang(At::kAppend);
  writer->add_scalar("t", 1, 1);
  ASSERT_TRUE(files_.comes_to_hang());
  const auto fill = [&] {
    for (int step = 2; step <= 10; ++step) writer->add_scalar("t", 1, step);
  };
  EXPECT_THAT(error_after(Seconds{60}, fill), IsEmpty());
  EXPECT_EQ(writer->dropped_events(), 7u);
  EXPECT_THAT(errors(), ElementsAre(AllOf(HasSubstr("creating an event file in " + directory_.path()),
                                          HasSubstr("new events are dropped"))));
  files_.let_go();
  eventually([&] { return error_of([&] { writer->flush(); }).empty(); });
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("7 events were dropped meanwhile")));
  EXPECT_THROW(writer->close(), DataLossError);
}

TEST_F(HangingWrites, WhoAddsToAFullQueueLeavesTheTimeForTheLastCheckpoint) {
  auto writer = make_writer(/*max_queue=*/2);
  const FileWriter::WaitLimit limit(*writer, deadline_);
  files_.hang(At::kAppend);
  writer->add_scalar("t", 1, 1);
  ASSERT_TRUE(files_.comes_to_hang());
  while_it_hangs_ = [&] { deadline_.bring_forward(Seconds{30}); };
  const auto fill = [&] {
    for (int step = 2; step <= 10; ++step) writer->add_scalar("t", 1, step);
  };
  EXPECT_THAT(error_after(Seconds{5}, fill), IsEmpty());
  EXPECT_EQ(writer->dropped_events(), 7u);
}

TEST_F(HangingWrites, OfAShortDeadlineWhoAddsLeavesHalf) {
  auto writer = make_writer(/*max_queue=*/2);
  const FileWriter::WaitLimit limit(*writer, deadline_);
  files_.hang(At::kAppend);
  writer->add_scalar("t", 1, 1);
  ASSERT_TRUE(files_.comes_to_hang());
  while_it_hangs_ = [&] { deadline_.bring_forward(Seconds{6}); };
  const auto fill = [&] {
    for (int step = 2; step <= 10; ++step) writer->add_scalar("t", 1, step);
  };
  EXPECT_THAT(error_after(Seconds{3}, fill), IsEmpty());
}

TEST_F(HangingWrites, TheLimitIsForAllWaitsTogetherAlsoForThoseWithADeadline) {
  auto writer = make_hanging_writer(At::kAppend);
  const FileWriter::WaitLimit limit(*writer, deadline_);
  deadline_.bring_forward(Seconds{100});
  const auto flush = [&] { writer->flush_before(&deadline_); };
  for (const double most : {5, 1}) {  // nothing is left for the second one but what each gets
    files_.hang(At::kAppend);
    writer->add_scalar("t", 1, 2);
    error_after(Seconds{most}, flush);
    files_.let_go();
    eventually([&] { return error_of([&] { writer->flush(); }).empty(); });
  }
}

TEST_F(HangingWrites, WithoutTheLimitADeadlineIsOver) {
  auto writer = make_hanging_writer(At::kAppend);
  deadline_.bring_forward(Seconds{30});
  {
    const FileWriter::WaitLimit limit(*writer, deadline_);
  }
  writer->add_scalar("t", 1, 2);
  error_after(Seconds{60}, [&] { writer->flush(); });
}

TEST_F(HangingWrites, ATimeThatIsNoneIsRefused) {
  for (const double secs : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(FileWriter(directory_.path(), {.hang_secs = Seconds{secs}, .files = &files_}), InvalidArgumentError);
    EXPECT_THROW(FileWriter(directory_.path(), {.retry_secs = Seconds{secs}, .files = &files_}), InvalidArgumentError);
  }
  for (const double secs : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(FileWriter(directory_.path(), {.flush_secs = Seconds{secs}, .files = &files_}), InvalidArgumentError);
  }
}

}  // namespace
}  // namespace longhaul

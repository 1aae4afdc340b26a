#include "longhaul/events/file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/events/summary.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Writing : public ::testing::Test {
 protected:
  Writing() {
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      MutexLock lock(messages_mutex_);
      if (level >= LogLevel::kWarning) messages_.push_back(message);
    });
  }
  ~Writing() override { set_log_sink(before_); }

  FileWriterOptions options() { return {.files = &files_, .clock = &clock_}; }
  std::string logdir() const { return directory_.file("runs/a"); }
  std::vector<std::string> paths() { return event_files(logdir()); }
  std::vector<std::string> messages() {
    MutexLock lock(messages_mutex_);
    return messages_;
  }

  // All events but the versions, with which each file begins.
  std::vector<proto::Event> events() {
    std::vector<proto::Event> all;
    for (const auto& path : paths()) {
      EventReader reader(path);
      const auto version = reader.next();
      if (!version) continue;  // being written
      EXPECT_EQ(version->file_version(), "brain.Event:2") << path;
      while (auto event = reader.next()) all.push_back(*event);
    }
    return all;
  }
  std::vector<int64_t> steps() {
    std::vector<int64_t> all;
    for (const auto& event : events()) all.push_back(event.step());
    return all;
  }

  // Waits for what another thread does, without end where it never does it.
  template <typename Condition>
  static void wait_until(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }

  testing::TemporaryDirectory directory_;
  testing::FaultyFileSystem files_;
  testing::FakeClock clock_;
  LogSink before_;
  Mutex messages_mutex_;
  std::vector<std::string> messages_;
};

TEST_F(Writing, EventsAreInTheFileInTheirOrder) {  // EV-10, EV-13
  FileWriter writer(logdir(), options());
  writer.add_session_log(
      [] {
        proto::SessionLog log;
        log.set_status(proto::SessionLog::START);
        return log;
      }(),
      1);
  writer.add_summary(scalar_summary("loss", 0.5f), 10);
  writer.add_scalar("loss", 0.25f, 20);
  writer.add_summary(scalar_summary("loss", 0.125f).SerializeAsString(), 30);
  writer.add_graph("graph", 40);
  writer.add_meta_graph("meta", 41);
  writer.add_run_metadata({}, "test run", 42);
  proto::Event own;
  own.set_wall_time(3);
  own.mutable_log_message()->set_message("hello");
  writer.add_event(own);
  writer.close();

  auto all = events();
  ASSERT_THAT(all, SizeIs(8));
  EXPECT_THAT(steps(), ElementsAre(1, 10, 20, 30, 40, 41, 42, 0));
  EXPECT_EQ(all[0].session_log().status(), proto::SessionLog::START);
  EXPECT_EQ(all[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(all[2].summary().value(0).simple_value(), 0.25f);
  EXPECT_EQ(all[3].summary().value(0).simple_value(), 0.125f);
  EXPECT_EQ(all[4].graph_def(), "graph");
  EXPECT_EQ(all[5].meta_graph_def(), "meta");
  EXPECT_EQ(all[6].tagged_run_metadata().tag(), "test run");
  EXPECT_EQ(all[7].SerializeAsString(), own.SerializeAsString());
  EXPECT_EQ(all[0].wall_time(), clock_.wall_time());
}

TEST_F(Writing, AGraphInTheConstructorIsWrittenAtStepZero) {  // EV-11
  proto::GraphDef graph;
  graph.add_node()->set_name("w");
  FileWriter writer(logdir(), graph, options());
  writer.close();
  const std::vector<proto::Event> all = events();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].graph_def(), graph.SerializeAsString());
  proto::MetaGraphDef meta;
  ASSERT_TRUE(meta.ParseFromString(all[1].meta_graph_def()));
  EXPECT_EQ(meta.graph_def().SerializeAsString(), graph.SerializeAsString());
  EXPECT_EQ(all[0].step() + all[1].step(), 0);
}

TEST_F(Writing, EventsHaveTheTimeOfTheMachinesClock) {  // EV-10
  const double now = Clock::real().wall_time();
  FileWriter writer(logdir());
  writer.add_session_log(proto::SessionLog(), 1);
  writer.add_summary(scalar_summary("loss", 0.5f), 10);
  writer.add_scalar("loss", 0.5f, 20);
  writer.add_graph("graph", 30);
  writer.add_run_metadata({}, "test run", 40);
  writer.close();
  EXPECT_THAT(steps(), ElementsAre(1, 10, 20, 30, 40));
  for (const auto& event : events()) EXPECT_NEAR(event.wall_time(), now, 5);
}

TEST_F(Writing, FilesAreNamedAsReadersExpectThem) {  // EV-1
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1);
  writer.close();
  char host[256];
  gethostname(host, sizeof(host));
  EXPECT_THAT(paths(), ElementsAre(logdir() + "/events.out.tfevents.1600001000." + host));
}

TEST_F(Writing, TheFileComesWithTheFirstEventUnlessItHasASuffix) {  // EV-1, EV-3
  FileWriter lazy(logdir(), options());
  EXPECT_TRUE(files_.is_directory(logdir())) << "with its parents";
  EXPECT_THAT(paths(), IsEmpty());
  lazy.close();
  EXPECT_THAT(paths(), IsEmpty());

  auto with_suffix = options();
  with_suffix.filename_suffix = ".eval";
  FileWriter writer(logdir(), with_suffix);
  ASSERT_THAT(paths(), SizeIs(1));
  EXPECT_TRUE(paths()[0].ends_with(".eval"));
}

TEST_F(Writing, AFileOfTheSameSecondSortsAfterTheOthers) {  // unlike EV-4
  for (int64_t step : {1, 2, 3}) {
    FileWriter writer(logdir(), options());
    writer.add_scalar("t", 1, step);
    writer.close();
    writer.reopen();
    writer.add_scalar("t", 1, step + 10);
    writer.close();
  }
  EXPECT_THAT(paths(), SizeIs(6));
  EXPECT_THAT(steps(), ElementsAre(1, 11, 2, 12, 3, 13));
}

TEST_F(Writing, AFileAfterTheClockWasSetBackSortsAfterTheOthers) {
  files_.make_directories(logdir());
  files_.create(logdir() + "/events.out.tfevents.1700000000.zebra")->close();
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1);
  writer.close();
  EXPECT_THAT(paths()[1], HasSubstr("events.out.tfevents.1700000001."));
}

// Shows no files: as if another process made each one just after it was looked for.
class BlindFiles : public testing::FaultyFileSystem {
 public:
  std::vector<std::string> list(const std::string&) override { return {}; }
};

TEST_F(Writing, ANameThatAnotherProcessTakesFirstIsNotOverwritten) {
  BlindFiles blind;
  for (int64_t step : {1, 2, 3}) {
    FileWriter writer(logdir(), {.files = &blind, .clock = &clock_});
    writer.add_scalar("t", 1, step);
    writer.close();
  }
  EXPECT_THAT(paths(), SizeIs(3));
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
}

TEST_F(Writing, ClosingSyncsFileAndDirectory) {  // unlike EV-6
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1);
  writer.close();
  const std::string name = base_name(paths()[0]);
  auto done = files_.operations();
  EXPECT_THAT(std::vector(done.end() - 3, done.end()),
              ElementsAre("sync " + name, "close " + name, "sync_directory " + logdir()));
}

TEST_F(Writing, AClosedWriterWarnsAndWritesNothing) {  // EV-12
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  writer.close();
  writer.close();
  EXPECT_THAT(messages(), IsEmpty());
  writer.add_scalar("t", 1, 2);
  writer.add_graph("graph");
  writer.flush();
  EXPECT_THAT(messages(), SizeIs(3));
  EXPECT_THAT(messages(), Contains(HasSubstr(logdir() + " is closed")));
  EXPECT_THAT(steps(), ElementsAre(1));
}

TEST_F(Writing, TheFirstRecordHasTheVersionAndWholeSeconds) {  // EV-2
  clock_.advance(Seconds(0.5));
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1);
  writer.close();
  EventReader reader(paths()[0]);
  const auto version = *reader.next();
  EXPECT_EQ(version.file_version(), "brain.Event:2");
  EXPECT_EQ(version.wall_time(), 1600001000.0);
  EXPECT_EQ(reader.next()->wall_time(), 1600001000.5);
}

TEST_F(Writing, AWriterThatGoesOutOfScopeIsClosed) {  // EV-12
  {
    FileWriter(logdir(), options()).add_scalar("t", 1, 7);
  }
  EXPECT_THAT(steps(), ElementsAre(7));
}

class Metadata : public Writing {
 protected:
  // For each value, whether it has metadata.
  std::vector<bool> kept() {
    std::vector<bool> kept;
    for (const auto& event : events()) kept.push_back(event.summary().value(0).has_metadata());
    return kept;
  }
  const proto::Summary described_ = text_summary("t", "text");
};

TEST_F(Metadata, IsKeptWithTheFirstValueOfATag) {  // EV-14
  FileWriter writer(logdir(), options());
  writer.add_summary(described_, 1);
  writer.add_summary(described_, 2);
  writer.add_summary(described_.SerializeAsString(), 3);
  writer.add_summary(text_summary("other", "text"), 4);
  writer.close();
  EXPECT_THAT(kept(), ElementsAre(true, false, false, true));
  for (const auto& event : events()) EXPECT_EQ(event.summary().value(0).tensor().string_val(0), "text");
}

TEST_F(Metadata, IsWrittenAgainAfterReopening) {  // unlike EV-14
  FileWriter writer(logdir(), options());
  writer.add_summary(described_, 1);
  writer.close();
  writer.reopen();
  writer.add_summary(described_.SerializeAsString(), 2);
  writer.close();
  EXPECT_THAT(kept(), ElementsAre(true, true));
}

TEST_F(Metadata, IsWrittenAgainAfterAFileWasLost) {
  FileWriter writer(logdir(), options());
  writer.add_summary(described_, 1);
  writer.flush();
  files_.remove(paths()[0]);
  writer.add_summary(described_, 2);
  EXPECT_THROW(writer.flush(), NotFoundError);
  writer.add_summary(described_, 3);  // may be dropped
  writer.flush();
  writer.add_summary(described_, 4);
  writer.add_summary(described_, 5);
  writer.close();
  EXPECT_THAT(steps(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(kept(), ElementsAre(false, true, true, false));
}

TEST_F(Writing, AssetsOfPluginsAreFilesBesideTheEvents) {  // EV-15
  FileWriter writer(logdir(), options());
  writer.add_plugin_asset("plugin", "asset.json", "old");
  writer.add_plugin_asset("plugin", "asset.json", "{}");
  EXPECT_EQ(read_file(files_, logdir() + "/plugins/plugin/asset.json"), "{}");
  EXPECT_THAT(files_.list(logdir() + "/plugins/plugin"), ElementsAre("asset.json"));
  for (const char* name : {"", ".", "..", "a/b"}) {
    EXPECT_THROW(writer.add_plugin_asset("plugin", name, ""), InvalidArgumentError) << name;
    EXPECT_THROW(writer.add_plugin_asset(name, "asset", ""), InvalidArgumentError) << name;
  }
  writer.close();
  writer.add_plugin_asset("plugin", "late", "");
  EXPECT_FALSE(files_.exists(logdir() + "/plugins/plugin/late"));
  EXPECT_THAT(messages(), Contains(HasSubstr("is closed")));
}

TEST_F(Writing, BytesThatAreNoSummaryAreRefused) {
  FileWriter writer(logdir(), options());
  EXPECT_THROW(writer.add_summary("\x0a\x05"), InvalidArgumentError);
}

TEST_F(Writing, ATagOfRunMetadataIsUsedOnce) {  // EV-10
  FileWriter writer(logdir(), options());
  writer.add_run_metadata({}, "step 1");
  writer.add_run_metadata({}, "step 2");
  EXPECT_THAT([&] { writer.add_run_metadata({}, "step 1"); },
              ::testing::ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("The provided tag was already used for this event type")));
}

TEST_F(Writing, ADirectoryThatCannotBeMadeIsAnErrorAtOnce) {
  files_.create(directory_.file("file"))->close();
  EXPECT_THROW(FileWriter(directory_.file("file/logs")), Error);
  EXPECT_THROW(FileWriter(""), InvalidArgumentError);
}

TEST_F(Writing, TheFirstEventIsInTheFileAtOnceAndTheNextAfterFlushSecs) {  // unlike EV-18
  FileWriter writer(logdir(), options());
  writer.add_scalar("t", 1, 1);
  wait_until([&] { return paths().size() == 1 && steps().size() == 1; });

  writer.add_scalar("t", 1, 2);
  clock_.advance(Seconds(1));
  EXPECT_THAT(steps(), ElementsAre(1));
  wait_until([&] {
    clock_.advance(Seconds(60));
    return steps().size() == 2;
  });
}

TEST_F(Writing, ByDefaultManyEventsMayWaitAndNoneForMoreThanTwoMinutes) {  // unlike EV-18
  const FileWriterOptions defaults;
  EXPECT_EQ(defaults.max_queue, 65536u);
  EXPECT_EQ(defaults.max_queue_bytes, size_t{16} << 20);
  EXPECT_EQ(defaults.flush_secs, Seconds{120});
}

TEST_F(Writing, FlushedEventsAreInTheFile) {
  FileWriter writer(logdir(), options());
  for (int64_t step = 1; step <= 3; ++step) {
    writer.add_scalar("t", 1, step);
    writer.flush();
    EXPECT_THAT(steps(), SizeIs(step));
  }
}

TEST_F(Writing, ManyProducersLoseNothingAndKeepTheirOrder) {
  constexpr int kThreads = 4, kEach = 20'000;
  auto small = options();
  small.max_queue = 1000;  // so that they also wait for room
  FileWriter writer(logdir(), small);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&writer, t] {
      for (int i = 1; i <= kEach; ++i) writer.add_scalar("t" + std::to_string(t), 1, i);
    });
  for (auto& thread : threads) thread.join();
  writer.close();

  std::map<std::string, int64_t> last;
  for (const auto& event : events()) EXPECT_EQ(event.step(), ++last[event.summary().value(0).tag()]);
  EXPECT_THAT(last, SizeIs(kThreads));
  for (const auto& [tag, step] : last) EXPECT_EQ(step, kEach);
}

TEST_F(Writing, FlushingAndClosingRaceWithProducersUnharmed) {
  FileWriter writer(logdir(), options());
  std::thread producer([&] {
    for (int i = 0; i < 2000; ++i) writer.add_scalar("t", 1, i);
  });
  for (int i = 0; i < 20; ++i) writer.flush();
  writer.close();
  producer.join();
  const auto written = steps();
  for (size_t i = 0; i < written.size(); ++i) EXPECT_EQ(written[i], static_cast<int64_t>(i));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/events/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "longhaul/base/error.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EventLog : public ::testing::Test {
 protected:
  EventLog() : before_(set_log_sink({})) {}
  ~EventLog() override { set_log_sink(before_); }

  static void log_at_every_level() {
    log_debug("d");
    log_info("i");
    log_warning("w");
    log_error("e");
  }

  // "WARN w"
  std::vector<std::string> written() {
    std::vector<std::string> lines;
    for (const auto& path : event_files(directory_.path())) {
      EventReader reader(path);
      while (auto event = reader.next()) {
        if (!event->has_log_message()) continue;
        const auto& log = event->log_message();
        lines.push_back(proto::LogMessage::Level_Name(log.level()) + " " + log.message());
      }
    }
    return lines;
  }

  testing::TemporaryDirectory directory_;
  LogSink before_;
};

TEST_F(EventLog, WarningsAndErrorsAreWrittenUnlessSaidOtherwise) {  // EV-20
  FileWriter writer(directory_.path());
  set_log_sink(event_log_sink(&writer));
  log_at_every_level();
  set_log_sink({});
  writer.close();
  EXPECT_THAT(written(), ElementsAre("WARN w", "ERROR e"));
}

TEST_F(EventLog, EveryLevelIsWrittenThatIsAskedFor) {  // EV-20
  FileWriter writer(directory_.path());
  set_log_sink(event_log_sink(&writer, LogLevel::kDebug));
  log_at_every_level();
  set_log_sink({});
  writer.add_log_message(proto::LogMessage::FATAL, "f");
  writer.close();
  EXPECT_THAT(written(), ElementsAre("DEBUGGING d", "INFO i", "WARN w", "ERROR e", "FATAL f"));
}

TEST_F(EventLog, TheSinkBesideGetsAllMessages) {
  std::vector<std::string> seen;
  FileWriter writer(directory_.path());
  set_log_sink(
      event_log_sink(&writer, LogLevel::kError, [&](LogLevel, const std::string& text) { seen.push_back(text); }));
  log_at_every_level();
  set_log_sink({});
  EXPECT_THAT(seen, ElementsAre("d", "i", "w", "e"));
}

TEST_F(EventLog, NeedsAWriter) {  // EV-20
  EXPECT_THROW(event_log_sink(nullptr), FailedPreconditionError);
}

// The writer tells of the first event that it drops, which is a message.
TEST_F(EventLog, AFullDiskAndAFullQueueHangNobody) {
  testing::FaultyFileSystem files;
  FileWriter writer(directory_.path(), {.max_queue = 3, .files = &files});
  std::atomic<int> told = 0;
  set_log_sink(event_log_sink(&writer, LogLevel::kWarning, [&](LogLevel, const std::string& text) {
    if (text.find("no more events fit into memory") != text.npos) ++told;
  }));
  files.fail_writes_after(0);
  while (writer.last_error().empty()) log_warning("before it is known");
  while (told == 0) log_warning("of no use");
  EXPECT_GT(writer.dropped_events(), 0u);
  set_log_sink({});
  EXPECT_THROW(writer.close(), ResourceExhaustedError);
  EXPECT_EQ(told, 1);
}

TEST_F(EventLog, AMessageAfterTheCloseIsDroppedInSilence) {
  FileWriter writer(directory_.path());
  writer.close();
  set_log_sink(event_log_sink(&writer));
  log_at_every_level();
  EXPECT_THAT(written(), IsEmpty());
}

}  // namespace
}  // namespace longhaul

#include "longhaul/train/tenure/training_events.h"

#include <algorithm>

#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class TrainingEventsTest : public ::testing::Test {
 protected:
  // How many of the events begin like this.
  long count(const std::string& beginning) {
    const auto lines = describe(events_in_directory(directory.path()));
    return std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(beginning); });
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  testing::FaultyFileSystem files;
  Graph graph;
  std::shared_ptr<FileWriter> writer =
      std::make_shared<FileWriter>(directory.path(), FileWriterOptions{.files = &files, .clock = &clock});
  TrainingEvents events{writer, graph, nullptr};
};

TEST_F(TrainingEventsTest, EachFileHasTheGraphOnce) {
  for (int file = 1; file <= 2; ++file) {
    clock.advance(Seconds{10});  // a name of its own
    events.begin();
    events.write_graph();
    events.write_graph();
    events.close("", false);
    EXPECT_EQ(count("graph"), file);
  }
}

TEST_F(TrainingEventsTest, TellsOfTheStartAndTheStop) {
  events.write_start(7);
  events.close("model.ckpt-9", false);
  EXPECT_EQ(count("START 7"), 1);
  EXPECT_EQ(count("STOP"), 1);
  EXPECT_TRUE(writer->is_closed());
  events.close("model.ckpt-9", false);
  EXPECT_EQ(count("STOP"), 1) << "it is closed";
}

TEST_F(TrainingEventsTest, WhereTheDirectoryIsAnothersThereIsNoStop) {
  events.write_start(7);
  events.close("", true);
  EXPECT_EQ(count("STOP"), 0);
  EXPECT_TRUE(writer->is_closed());
}

TEST_F(TrainingEventsTest, FlushedTheyAreInTheFileWhichStaysOpen) {
  events.write_start(1);
  events.flush();  // the first is written at once, with what comes until then
  events.write_start(7);
  EXPECT_EQ(count("START 7"), 0);
  events.flush();
  EXPECT_EQ(count("START 7"), 1);
  EXPECT_FALSE(writer->is_closed());
}

TEST_F(TrainingEventsTest, ReleasedTheyAreInTheFileWhichIsItsOtherHolders) {
  events.write_start(1);
  events.flush();
  events.write_start(7);
  const std::weak_ptr<FileWriter> held = writer;
  events.release();
  EXPECT_EQ(count("START 7"), 1);
  EXPECT_FALSE(writer->is_closed());
  EXPECT_EQ(events.writer(), nullptr);
  writer.reset();
  EXPECT_TRUE(held.expired());
}

TEST_F(TrainingEventsTest, AFileThatLacksSomethingIsNoError) {
  events.write_start(7);
  files.fail_writes_after(0);
  const LogRecorder log;
  EXPECT_NO_THROW(events.close("", false));
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("is incomplete"));
}

TEST(TrainingEvents, WithoutAWriterThereAreNone) {
  TrainingEvents events(nullptr, Graph(), nullptr);
  events.begin();
  events.write_graph();
  events.write_start(7);
  events.flush();
  events.close("", false);
  events.release();
}

}  // namespace
}  // namespace longhaul

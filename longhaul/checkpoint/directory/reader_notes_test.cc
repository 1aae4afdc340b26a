#include "longhaul/checkpoint/directory/reader_notes.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <limits>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kNoteToken = "0123456789abcdef0123456789abcdef";

class ReaderNotesTest : public ::testing::Test {
 protected:
  std::string make_checkpoint(const std::string& name) {
    const std::string prefix = directory_.file(name);
    BundleWriter writer(files_, prefix);
    writer.add("w", Tensor::scalar(1.0f));
    writer.finish();
    return prefix;
  }
  static ReaderNote note_of(const std::string& checkpoint) {
    return {.checkpoint = checkpoint, .reader = {.token = kNoteToken, .process = this_process(), .limit = 60}};
  }
  std::string note_path(const std::string& name) const {
    return directory_.file(std::string(kReadersFolder) + "/" + name);
  }
  void put(const std::string& name, const std::string& text) {
    files_.make_directories(directory_.file(kReadersFolder));
    write_file_atomically(files_, note_path(name), text);
  }
  void make_older(const std::string& name, std::chrono::seconds by) {
    fs::last_write_time(note_path(name), fs::last_write_time(note_path(name)) - by);
  }
  ReaderNotes read() { return read_reader_notes(files_, directory_.path(), Clock::real()); }
  size_t count_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_.file(kReadersFolder)), {}));
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  const std::string pin_ = std::string("pin.") + kNoteToken;
};

TEST_F(ReaderNotesTest, WhereNobodyReadsThereAreNone) {
  const ReaderNotes notes = read();
  EXPECT_THAT(notes.pinned, IsEmpty());
  EXPECT_THAT(notes.metrics, IsEmpty());
  EXPECT_FALSE(fs::exists(directory_.file(kReadersFolder)));
}

TEST_F(ReaderNotesTest, APinLastsAsLongAsItsObject) {
  const std::string prefix = make_checkpoint("m-1");
  {
    const CheckpointPin pin(prefix);
    EXPECT_THAT(read().pinned, ElementsAre("m-1"));
  }
  EXPECT_THAT(read().pinned, IsEmpty());
  EXPECT_EQ(count_files(), 0u);
}

TEST_F(ReaderNotesTest, WhatIsDeletedCannotBePinned) {
  EXPECT_THROW(CheckpointPin(directory_.file("m-1")), NotFoundError);
  const std::string prefix = make_checkpoint("m-1"), newer = make_checkpoint("m-2");
  write_checkpoint_state(
      files_, directory_.path(),
      {.model_checkpoint_path = newer, .all_model_checkpoint_paths = {newer}, .paths_marked_for_deletion = {prefix}});
  EXPECT_THROW(CheckpointPin{prefix}, NotFoundError);
  EXPECT_EQ(count_files(), 0u);
  const CheckpointPin pin(newer);
  EXPECT_THAT(read().pinned, ElementsAre("m-2"));
}

TEST_F(ReaderNotesTest, TheTimeOfAPinHasLimits) {
  const std::string prefix = make_checkpoint("m-1");
  for (const double seconds : {0.0, -1.0, 24 * 3600 + 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(CheckpointPin(prefix, {.lasts = Seconds{seconds}}), InvalidArgumentError) << seconds;
  }
}

TEST_F(ReaderNotesTest, APinDiesWithItsProcess) {
  const std::string prefix = make_checkpoint("m-1");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const CheckpointPin* pin = new CheckpointPin(prefix);
    ::_exit(pin == nullptr ? 1 : 0);  // as a kill: no destructor
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const ReaderNotes notes = read();
  EXPECT_THAT(notes.pinned, IsEmpty());
  ASSERT_THAT(notes.worthless, SizeIs(1));
  remove_reader_notes(files_, notes.worthless);
  EXPECT_EQ(count_files(), 0u);
}

TEST_F(ReaderNotesTest, APinFromElsewhereLastsForItsTime) {
  ReaderNote note = note_of("m-1");
  note.reader.process.boot_id = "of another machine";
  put(pin_, format_reader_note(note));
  EXPECT_THAT(read().pinned, ElementsAre("m-1"));
  make_older(pin_, std::chrono::seconds(61));
  EXPECT_THAT(read().pinned, IsEmpty());
  EXPECT_THAT(read().worthless, SizeIs(1));
  make_older(pin_, std::chrono::seconds(-3600));  // a wrong clock does not make it last
  EXPECT_THAT(read().pinned, IsEmpty());
}

TEST_F(ReaderNotesTest, NoPinFromElsewhereLastsLongerThanADay) {
  ReaderNote note = note_of("m-1");
  note.reader.process.boot_id = "of another machine";
  note.reader.limit = 1e300;
  put(pin_, format_reader_note(note));
  EXPECT_THAT(read().pinned, ElementsAre("m-1"));
  make_older(pin_, std::chrono::hours(25));
  EXPECT_THAT(read().pinned, IsEmpty());
}

TEST_F(ReaderNotesTest, MetricsComeInTheirOrder) {
  const std::string prefix = make_checkpoint("m-1");
  std::vector<double> written;
  for (int i = 0; i < 20; ++i) {  // several in a millisecond
    written.push_back(-1e-300 * i);
    write_checkpoint_metric(prefix, written.back());
  }
  const ReaderNotes notes = read();
  EXPECT_THAT(notes.pinned, IsEmpty());
  std::vector<double> values;
  for (const auto& metric : notes.metrics) {
    EXPECT_EQ(metric.checkpoint, "m-1");
    values.push_back(metric.value);
  }
  EXPECT_EQ(values, written);
}

TEST_F(ReaderNotesTest, NoMetricOfADeletedCheckpointAndNoneThatIsNotANumber) {
  EXPECT_THROW(write_checkpoint_metric(directory_.file("m-1"), 1), NotFoundError);
  const std::string prefix = make_checkpoint("m-1");
  std::string log;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { log += message; });
  write_checkpoint_metric(prefix, std::numeric_limits<double>::quiet_NaN());
  set_log_sink(before);
  EXPECT_THAT(log, HasSubstr("m-1 is not a number"));
  EXPECT_THAT(read().metrics, IsEmpty());
}

TEST_F(ReaderNotesTest, WhatIsNoNoteDoesNoHarm) {
  const std::string text = format_reader_note(note_of("m-1"));
  ReaderNote metric = note_of("m-1");
  metric.metric = 0.5;
  ReaderNote outside = note_of("../m-1");
  const std::vector<std::string> texts = {"",
                                          "longhaul reader note 2\n" + text,
                                          text + "more\n",
                                          format_reader_note(metric),  // under the name of a pin
                                          format_reader_note(outside),
                                          std::string(100'000, 'x')};
  for (const std::string& one : texts) {
    put(pin_, one);
    EXPECT_THAT(read().pinned, IsEmpty()) << one.substr(0, 100);
    EXPECT_THAT(read().worthless, IsEmpty());  // it may be somebody's: it stays for a day
  }
  make_older(pin_, std::chrono::hours(25));
  EXPECT_THAT(read().worthless, SizeIs(1));
  fs::remove(note_path(pin_));
  put(pin_ + ".tmp0", text);
  EXPECT_THAT(read().pinned, IsEmpty());
  ASSERT_EQ(::mkfifo(note_path(pin_).c_str(), 0600), 0);
  EXPECT_THAT(read().pinned, IsEmpty());
  fs::remove(note_path(pin_));
  fs::create_directory(note_path(pin_));
  EXPECT_THAT(read().pinned, IsEmpty());
}

TEST_F(ReaderNotesTest, EveryPrefixAndEveryChangedLineIsRefusedOrReadWhole) {
  ReaderNote note = note_of("m-1");
  note.metric = 0.75;
  const std::string text = format_reader_note(note);
  EXPECT_EQ(parse_reader_note(text, "x"), note);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse_reader_note(text.substr(0, size), "x"), DataLossError) << size;
  }
  for (const char* wrong : {"metric nan", "metric", "metric 1x", "is", "is written", "metric 0.75 "}) {
    std::string changed = text;
    changed.replace(changed.find("metric 0.75"), 11, wrong);
    EXPECT_THROW(parse_reader_note(changed, "x"), DataLossError) << wrong;
  }
}

TEST_F(ReaderNotesTest, WhatIsInThePlaceOfTheFolderIsAnErrorOfThePinAlone) {
  const std::string prefix = make_checkpoint("m-1");
  write_file_atomically(files_, directory_.file(kReadersFolder), "a file");
  EXPECT_THROW(CheckpointPin{prefix}, FailedPreconditionError);
  EXPECT_THROW(write_checkpoint_metric(prefix, 1), FailedPreconditionError);
  EXPECT_THAT(read().pinned, IsEmpty());
}

}  // namespace
}  // namespace longhaul

#include "longhaul/console/events/event_listing.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

#include "longhaul/console/events/event_values.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/records/record.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class EventListingTest : public ::testing::Test {
 protected:
  std::string framed(const proto::Event& event) {
    const std::string path = directory_.file("record");
    const auto file = files_.create(path);
    RecordWriter(*file).write(event.SerializeAsString());
    file->close();
    std::string bytes = read_file(files_, path);
    files_.remove(path);
    return bytes;
  }
  static proto::Event event_at(int64_t step) {
    proto::Event event;
    event.set_wall_time(1763721934 + static_cast<double>(step));
    event.set_step(step);
    return event;
  }
  std::string with(int64_t step, const proto::Summary& summary) {
    proto::Event event = event_at(step);
    *event.mutable_summary() = summary;
    return framed(event);
  }
  void append(const std::string& bytes, const std::string& name = "events.out.tfevents.1.host") {
    std::ofstream(directory_.file(name), std::ios::app | std::ios::binary) << bytes;
  }
  void add_scalars(int64_t from, int64_t to, const std::string& tag = "loss") {
    const std::string path = directory_.file("records");
    const auto file = files_.create(path);
    RecordWriter records(*file);
    for (int64_t step = from; step <= to; ++step) {
      proto::Event event = event_at(step);
      *event.mutable_summary() = scalar_summary(tag, 1 / static_cast<float>(step + 1));
      records.write(event.SerializeAsString());
    }
    file->close();
    append(read_file(files_, path));
    files_.remove(path);
  }
  Report list(EventListingOptions options = {}) {
    options.path = directory_.path();
    return list_events(files_, options, 1763722000, {});
  }

  FileSystem& files_ = FileSystem::real();
  const testing::TemporaryDirectory directory_;
};

TEST_F(EventListingTest, ListsTagsWithTheirLastValues) {
  add_scalars(0, 9);
  append(with(9, histogram_summary("weights", Tensor::of<float>({1, 2, 3}))));
  append(with(9, text_summary("note", "hello")));
  append(with(9, image_summary("picture", Tensor(kUInt8, Shape{1, 4, 5, 1}), 1)));
  const Report report = list();
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("loss "), HasSubstr("scalar         10  0 to 9  0.1 "), HasSubstr("3 values, 1 to 3"),
                    HasSubstr("hello"), HasSubstr("5 x 4"), HasSubstr("57 s ago")));
  ASSERT_EQ(report.json["tags"].size(), 4u);
  EXPECT_EQ(report.json["tags"][0]["count"], 10);
  EXPECT_TRUE(report.is_fine);
}

TEST_F(EventListingTest, ATagHasItsLastValues) {
  add_scalars(0, 99);
  const Report report = list({.tag = "loss", .last = 2});
  EXPECT_THAT(report.text, AllOf(HasSubstr("loss (scalar, 100 in all)"), HasSubstr("  98  2025-11-21 10:47:12 UTC"),
                                 HasSubstr("0.01\n"), Not(HasSubstr("  97 "))));
  EXPECT_EQ(report.json["tags"][0]["values"].size(), 2u);
  EXPECT_EQ(list({.tag = "l*"}).json["tags"].size(), 1u);
  EXPECT_THROW(list({.tag = "none"}), NotFoundError);
}

TEST_F(EventListingTest, ALongTextIsShownWholeWhereItsTagIsAskedFor) {
  const std::string stacks = "thread lh-saver\n" + std::string(200, 'f') + "\nthread main \x1b[2J\nthe end";
  append(with(7, text_summary("hang", stacks)));
  EXPECT_THAT(list().text, Not(HasSubstr("the end")));
  const Report report = list({.tag = "hang"});
  EXPECT_THAT(report.text, AllOf(HasSubstr("The last one, of step 7:\nthread lh-saver\n"), HasSubstr("\nthe end\n"),
                                 HasSubstr("\\x1b[2J")));
  EXPECT_EQ(report.json["tags"][0]["values"][0]["text"], stacks);
  append(with(8, text_summary("hang", std::string(3 << 20, 'x'))));
  EXPECT_THAT(list({.tag = "hang"}).text, HasSubstr("(2097152 bytes more)"));
}

TEST_F(EventListingTest, PlotsAScalar) {
  add_scalars(0, 20000);
  const Report report = list({.tag = "loss", .plots = true});
  EXPECT_THAT(report.text, AllOf(HasSubstr("1 | *"), HasSubstr("20000")));
  EXPECT_LT(report.json["tags"][0]["points"].size(), 9000u);
}

TEST_F(EventListingTest, StepsThatWereMadeAgainReplaceTheEarlierOnes) {
  add_scalars(0, 9);
  proto::Event start = event_at(5);
  start.mutable_session_log()->set_status(proto::SessionLog::START);
  append(framed(start), "events.out.tfevents.2.host");
  append(with(5, scalar_summary("loss", 7)), "events.out.tfevents.2.host");
  const Report report = list({.tag = "loss"});
  const Json& values = report.json["tags"][0]["values"];
  ASSERT_EQ(values.size(), 6u);
  EXPECT_EQ(values[5]["value"], 7);
}

TEST_F(EventListingTest, WhatARestartWithdrewIsNotListedEvenIfNothingReplacesIt) {
  add_scalars(1, 9, "old");
  append(with(9, scalar_summary("late", 1)));
  const auto begin_at = [&](int64_t step, const std::string& name) {
    proto::Event start = event_at(step);
    start.mutable_session_log()->set_status(proto::SessionLog::START);
    append(framed(start), name);
  };
  begin_at(8, "events.out.tfevents.2.host");
  append(with(8, scalar_summary("new", 7)), "events.out.tfevents.2.host");
  begin_at(5, "events.out.tfevents.3.host");
  append(with(6, scalar_summary("new", 7)), "events.out.tfevents.3.host");
  const Json tags = list().json["tags"];
  ASSERT_EQ(tags.size(), 2u) << tags;
  EXPECT_EQ(tags[0]["last"]["step"], 6);
  EXPECT_EQ(tags[1]["count"], 4);
  EXPECT_EQ(tags[1]["last"]["step"], 4);
  EXPECT_EQ(list({.tag = "old", .plots = true}).json["tags"][0]["points"].back()[0], 4);
  const Json values = list({.tag = "old", .last = 3}).json["tags"][0]["values"];
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0]["step"], 2);
}

TEST_F(EventListingTest, ScalarsOfTensorFlow2AreScalars) {
  proto::TensorProto tensor;
  tensor.set_dtype(proto::DT_FLOAT);
  tensor.add_float_val(0.25f);
  append(with(3, tensor_summary("loss", tensor, plugin_metadata("scalars"))));
  EXPECT_EQ(list().json["tags"][0]["last"]["value"], 0.25);
}

TEST_F(EventListingTest, ADamagedFileIsNamedAndTheRestListed) {
  add_scalars(0, 9);
  append("this is not a record at all, whatever it is");
  append(with(10, scalar_summary("other", 1)), "events.out.tfevents.2.host");
  const Report report = list();
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr("wrong: "), HasSubstr("events.out.tfevents.1.host"), HasSubstr("other")));
}

TEST_F(EventListingTest, AFileThatMemoryIsTooSmallForIsNamedAndTheRestRead) {
  add_scalars(0, 0);
  append(with(1, scalar_summary("other", 1)), "events.out.tfevents.2.host");
  EventFiles files(files_, directory_.path());
  std::vector<std::string> tags;
  files.read([&](const EventValue& value) {
    if (value.tag == "loss") throw std::bad_alloc();
    tags.push_back(value.tag);
  });
  EXPECT_THAT(tags, ElementsAre("other"));
  EXPECT_THAT(files.problems(), ElementsAre(HasSubstr("events.out.tfevents.1.host: memory is too small")));
}

TEST_F(EventListingTest, AFileThatStillGrowsIsFine) {
  add_scalars(0, 9);
  append(with(10, scalar_summary("loss", 1)).substr(0, 20));
  EXPECT_TRUE(list().is_fine);
  EXPECT_EQ(list().json["tags"][0]["count"], 10);
}

TEST_F(EventListingTest, AHostileTagIsShownHarmlessly) {
  append(with(1, scalar_summary("\x1b[2J", 1)));
  EXPECT_THAT(list().text, AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
}

TEST_F(EventListingTest, ADirectoryMayHaveNoEvents) {
  EXPECT_THAT(list().text, HasSubstr("no values in 0 event files"));
  EXPECT_THROW(list_events(files_, {.path = directory_.file("none")}, 0, {}), NotFoundError);
}

TEST_F(EventListingTest, FollowsWhatIsWrittenFromThenOn) {
  add_scalars(0, 9);
  append(std::string(100, 'x'), "events.out.tfevents.0.host");  // is told of when the first look is over
  std::vector<std::string> said;
  follow_events(files_, directory_.path(), "loss", [&](const std::string& text, const Json&) {
    said.push_back(text);
    if (said.size() == 1) {
      add_scalars(10, 10, "other");
      append(with(11, scalar_summary("loss", 5)), "events.out.tfevents.2.host");
    } else {
      add_scalars(12, 12);
    }
    return said.size() < 3;
  });
  EXPECT_THAT(said, ElementsAre(HasSubstr("wrong: "), HasSubstr("step 11  loss 5"), HasSubstr("step 12  loss 0.0769")));
}

TEST_F(EventListingTest, FilesAreFollowedWithoutStayingOpen) {
  EventFiles followed(files_, directory_.path());
  std::vector<int64_t> steps;
  const auto read = [&] {
    steps.clear();
    followed.read([&](const EventValue& value) { steps.push_back(value.step); });
    return steps;
  };
  for (int i = 0; i < 50; ++i) append(with(i, scalar_summary("a", 1)), "events.out.tfevents.1" + std::to_string(i));
  const size_t before = open_descriptors();
  EXPECT_EQ(read().size(), 50u);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_THAT(read(), ElementsAre());
  EXPECT_THAT(read(), ElementsAre());
  append(with(77, scalar_summary("a", 1)), "events.out.tfevents.10");
  EXPECT_THAT(read(), ElementsAre(77));
  const std::string next = with(78, scalar_summary("a", 1));
  append(next.substr(0, 20), "events.out.tfevents.10");
  EXPECT_THAT(read(), ElementsAre());
  append(next.substr(20), "events.out.tfevents.10");
  EXPECT_THAT(read(), ElementsAre(78));
}

}  // namespace
}  // namespace longhaul::console

#include "longhaul/events/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "longhaul/base/error.h"
#include "longhaul/io/records/record.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first three records of a file that TensorBoard's own writer made: version, session log, scalar.
const char kGenuineHex[] =
    "4800000000000000fe92489d09ba1f1f2b32c0da411a0d627261696e2e4576656e743a32522e0a2c74656e736f72626f6172642e73756d"
    "6d6172792e7772697465722e6576656e745f66696c655f7772697465726002fbff100000000000000095fbfe1809000000eba9fdd74110"
    "96013a0208010e583ea11800000000000000a37f4b220900008010aafdd7411096012a0a0a080a017315000016c3e12e833a";
constexpr size_t kGenuineEnds[] = {0, 88, 120, 160};

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

class Reading : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view bytes) {
    auto file = FileSystem::real().create(directory_.file(name));
    file->append(bytes);
    file->close();
    return directory_.file(name);
  }

  testing::TemporaryDirectory directory_;
  const std::string genuine_ = from_hex(kGenuineHex);
};

TEST_F(Reading, AGenuineFileIsRead) {
  EventReader reader(write("f", genuine_));
  EXPECT_EQ(reader.next()->file_version(), "brain.Event:2");
  auto log = reader.next();
  EXPECT_EQ(log->step(), 150);
  EXPECT_EQ(log->session_log().status(), proto::SessionLog::START);
  auto scalar = reader.next();
  EXPECT_EQ(scalar->wall_time(), 1610000450);
  EXPECT_EQ(scalar->summary().value(0).tag(), "s");
  EXPECT_EQ(scalar->summary().value(0).simple_value(), -150);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.is_truncated());
}

// Values of two bytes, each of which would take a hundred in memory.
TEST_F(Reading, AnEventOfFarMoreMemoryThanItsBytesIsNone) {
  const size_t values = 4 * 1000 * 1000;
  std::string event("\x2a\x80\xa4\xe8\x03", 5);  // a summary of 8 million bytes
  for (size_t i = 0; i < values; ++i) event += std::string("\x0a\x00", 2);
  std::string file;
  append_record(file, event);
  const std::string path = write("f", file);
  EXPECT_THROW(EventReader(path).next(), DataLossError);
  const auto growth = testing::memory_growth([&] { EventReader(path).next(); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 24u << 20);
}

TEST_F(Reading, EveryPrefixGivesTheWholeEventsInIt) {
  for (size_t size = 0; size <= genuine_.size(); ++size) {
    EventReader reader(write("f", genuine_.substr(0, size)));
    size_t events = 0;
    while (reader.next()) ++events;
    EXPECT_EQ(events, (size >= kGenuineEnds[1]) + (size >= kGenuineEnds[2]) + (size >= kGenuineEnds[3])) << size;
    EXPECT_EQ(reader.is_truncated(), size != kGenuineEnds[events]) << size;
  }
}

TEST_F(Reading, AFlippedBitEndsTheFile) {  // TB-2
  for (size_t at = 0; at < genuine_.size(); ++at) {
    std::string bytes = genuine_;
    bytes[at] ^= 4;
    EventReader reader(write("f", bytes));
    EXPECT_THROW(while (reader.next()){}, DataLossError) << at;
  }
}

TEST_F(Reading, AFileThatGrowsIsFollowed) {  // TB-2
  EventReader reader(write("f", genuine_.substr(0, 100)));
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_truncated());
  write("f", genuine_);
  EXPECT_EQ(reader.next()->step(), 150);
}

TEST_F(Reading, ARecordThatIsNoEventIsNamed) {
  std::string bytes = genuine_;
  append_record(bytes, "\x0a\xff no message");
  EventReader reader(write("f", bytes));
  for (int i = 0; i < 3; ++i) reader.next();
  try {
    reader.next();
    FAIL() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/f: the record at 160 is not an event"));
  }
}

TEST_F(Reading, FilesAreTakenInTheOrderOfTheirNames) {  // TB-1
  for (const char* name : {"events.out.tfevents.2.b", "events.out.tfevents.10.a", "other", "x.tfevents"})
    write(name, "");
  EXPECT_THAT(event_files(directory_.path()),
              ElementsAre(directory_.file("events.out.tfevents.10.a"), directory_.file("events.out.tfevents.2.b"),
                          directory_.file("x.tfevents")));
  EXPECT_THROW(event_files(directory_.file("missing")), NotFoundError);
}

class GenuineEvents : public ::testing::Test {
 protected:
  using Points = std::vector<std::pair<int64_t, double>>;

  void SetUp() override {
    const char* folder = std::getenv("LONGHAUL_FIXTURES");
    LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
    root_ = std::filesystem::path(folder) / "events";
  }

  void expect_file(const std::string& path, const nlohmann::json& expected) {
    EventReader reader(path);
    int records = 0;
    std::string version;
    std::map<std::string, int> kinds;
    while (auto event = reader.next()) {
      ++records;
      if (!event->file_version().empty()) version = event->file_version();
      if (event->has_session_log()) ++kinds["session_log"];
      for (const auto& value : event->summary().value()) take(event->step(), value, kinds);
    }
    EXPECT_EQ(records, expected["records"]) << path;
    EXPECT_EQ(version, expected["file_version"].is_null() ? "" : expected["file_version"].get<std::string>()) << path;
    for (const char* kind : {"session_log", "summary.simple_value", "summary.histo", "summary.image"})
      EXPECT_EQ(kinds[kind], expected["kinds"].value(kind, 0)) << path << ' ' << kind;
  }

  // TensorBoard's rule for a step that comes again: it replaces what is there from that step on.
  void take(int64_t step, const proto::Summary::Value& value, std::map<std::string, int>& kinds) {
    if (value.has_histo()) ++kinds["summary.histo"];
    if (value.has_image()) ++kinds["summary.image"];
    if (value.value_case() == proto::Summary::Value::kSimpleValue) ++kinds["summary.simple_value"];
    double number = value.simple_value();
    if (value.has_tensor()) {
      const auto& tensor = value.tensor();
      float content = 0;
      std::memcpy(&content, tensor.tensor_content().data(), std::min(tensor.tensor_content().size(), sizeof(content)));
      number = tensor.float_val_size() ? tensor.float_val(0) : content;
    }
    auto& points = scalars_[value.tag()];
    while (!points.empty() && points.back().first >= step) points.pop_back();
    points.emplace_back(step, number);
  }

  void expect_scalars(const nlohmann::json& expected) {
    for (const auto& [tag, curve] : expected.items()) {
      const Points& points = scalars_[tag];
      ASSERT_EQ(points.size(), curve["n"]) << tag;
      for (size_t i = 0; i < curve["first"].size(); ++i) expect_point(points[i], curve["first"][i]);
      const size_t last = curve["last"].size();
      for (size_t i = 0; i < last; ++i) expect_point(points[points.size() - last + i], curve["last"][i]);
    }
  }

  void expect_point(const std::pair<int64_t, double>& point, const nlohmann::json& expected) {
    EXPECT_EQ(point.first, expected[0]);
    EXPECT_EQ(point.second, expected[1].get<double>());
  }

  std::filesystem::path root_;
  std::map<std::string, Points> scalars_;
};

TEST_F(GenuineEvents, HoldWhatIndependentReadersFound) {
  constexpr std::string_view kEnding = ".expected.json";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(kEnding)) continue;
    const auto expected = nlohmann::json::parse(read_file(FileSystem::real(), entry.path()));
    const auto folder = root_ / name.substr(0, name.size() - kEnding.size());
    for (const auto& [run, found] : expected["runs"].items()) {
      scalars_.clear();
      const auto paths = event_files(folder / run);
      ASSERT_EQ(paths.size(), found["files"].size()) << folder / run;
      for (size_t i = 0; i < paths.size(); ++i, ++files) {
        EXPECT_EQ(base_name(paths[i]), found["files"][i]["name"].get<std::string>());
        expect_file(paths[i], found["files"][i]);
      }
      expect_scalars(found["rustboard_rule_scalars"]);
    }
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace longhaul

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "longhaul/events/file_writer.h"
#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/events/summary.h"
#include "longhaul/media/image.h"
#include "longhaul/media/wav.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

// What the writer writes, seen by a reader that shares no code with it.
namespace longhaul {
namespace {

using independent::CurveReader;
using independent::Curves;
using independent::field_of;
using independent::Point;
using independent::Rule;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<float> kSound = {0, 0.5f, -0.5f, 1};

class IndependentReading : public ::testing::Test {
 protected:
  std::unique_ptr<FileWriter> open() {
    return std::make_unique<FileWriter>(directory_.path(), FileWriterOptions{.clock = &clock_});
  }
  static void log(FileWriter& writer, proto::SessionLog::SessionStatus status, int64_t step) {
    proto::SessionLog log;
    log.set_status(status);
    writer.add_session_log(log, step);
  }
  // A value of every kind.
  static void add_all_kinds(FileWriter& writer, int64_t step) {
    const auto number = static_cast<float>(step);
    writer.add_scalar("scalar", number, step);
    writer.add_summary(histogram_summary("histogram", Tensor::of<float>({number, number})), step);
    writer.add_summary(image_summary("picture", Tensor::of<uint8_t>(Shape{1, 1, 2, 1}, {1, 2}), 1), step);
    writer.add_summary(audio_summary("sound", Tensor::of<float>(Shape{1, 4}, kSound), 8000, 1), step);
    writer.add_summary(text_summary("text", fmt::format("step {}", step)), step);
    writer.add_summary(tensor_summary("tensor", {}, plugin_metadata("pr_curves", "content")), step);
  }
  Curves read(Rule rule) const { return CurveReader::read(directory_.path(), rule); }

  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_;
};

TEST_F(IndependentReading, EveryKindOfSummaryIsThereWithItsPlugin) {
  const auto writer = open();
  for (const int64_t step : {1, 2}) add_all_kinds(*writer, step);
  writer->close();
  for (const Rule rule : {Rule::kStart, Rule::kPerTag}) {
    const Curves curves = read(rule);
    std::map<std::string, std::string> plugins;
    for (const auto& [tag, series] : curves) {
      plugins[tag] = series.plugin;
      EXPECT_THAT(series.steps(), ElementsAre(1, 2)) << tag;
    }
    EXPECT_EQ(plugins, (std::map<std::string, std::string>{{"scalar", "scalars"},
                                                           {"histogram", "histograms"},
                                                           {"picture/image", "images"},
                                                           {"sound/audio", "audio"},
                                                           {"text", "text"},
                                                           {"tensor", "pr_curves"}}));
    EXPECT_EQ(curves.at("tensor").plugin_content, "content");
    EXPECT_EQ(curves.at("text").plugin_content, "") << "version 0 of what the plugin wants";
  }
}

TEST_F(IndependentReading, EveryKindOfValueIsWhatWasGiven) {
  const auto writer = open();
  add_all_kinds(*writer, 3);
  writer->close();
  const Curves curves = read(Rule::kPerTag);
  const auto bytes = [&](const char* tag) { return curves.at(tag).points.at(0).bytes; };
  EXPECT_EQ(curves.at("scalar").points.at(0).number, 3);
  const std::string histogram = bytes("histogram");
  EXPECT_EQ(field_of(histogram, 1).as_double(), 3);  // min
  EXPECT_EQ(field_of(histogram, 3).as_double(), 2);  // num
  EXPECT_EQ(field_of(histogram, 4).as_double(), 6);  // sum
  const std::string image = bytes("picture/image");
  EXPECT_EQ(field_of(image, 1).number, 1);  // height
  EXPECT_EQ(field_of(image, 2).number, 2);  // width
  EXPECT_TRUE(identical(decode_png(field_of(image, 4).bytes), Tensor::of<uint8_t>(Shape{1, 2, 1}, {1, 2})));
  const std::string audio = bytes("sound/audio");
  EXPECT_EQ(field_of(audio, 1).as_float(), 8000);
  EXPECT_EQ(field_of(audio, 4).bytes, encode_wav(kSound, 8000, 1));
  EXPECT_EQ(field_of(audio, 5).bytes, "audio/wav");
  EXPECT_EQ(field_of(bytes("text"), 1).number, 7);  // DT_STRING
  EXPECT_EQ(field_of(bytes("text"), 8).bytes, "step 3");
}

// Two processes: the first gets to step 9 and is killed; the second goes on from the checkpoint of step 5.
class Restart : public IndependentReading {
 protected:
  Restart() {
    auto first = open();
    log(*first, proto::SessionLog::START, 0);
    for (int64_t step = 0; step <= 9; ++step) {
      add_all_kinds(*first, step);
      first->add_scalar("stale", 1, step);
    }
    first.reset();
    const auto second = open();  // within the same second
    log(*second, proto::SessionLog::START, 5);
    for (int64_t step = 6; step <= 8; ++step) add_all_kinds(*second, step);
    second->close();
  }
};

TEST_F(Restart, BothRulesShowOneCurveForWhatIsWrittenAgain) {  // TB-1, TB-3, TB-4, TB-5
  for (const char* tag : {"scalar", "histogram", "picture/image", "sound/audio", "text", "tensor"}) {
    EXPECT_THAT(read(Rule::kStart).at(tag).steps(), ElementsAre(0, 1, 2, 3, 4, 6, 7, 8)) << tag;
    EXPECT_THAT(read(Rule::kPerTag).at(tag).steps(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8)) << tag;
  }
}

TEST_F(Restart, ATagThatIsNotWrittenAgainKeepsWhatItHadWhereNoStartIsHeeded) {  // TB-3, TB-4
  EXPECT_THAT(read(Rule::kStart).at("stale").steps(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(read(Rule::kPerTag).at("stale").steps(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(Restart, TheNewFileIsReadAfterTheOldOne) {  // TB-5, EV-4
  const auto files = independent::files_in(directory_.path());
  ASSERT_EQ(files.size(), 2u);
  std::vector<int64_t> starts;
  for (const auto& event : independent::events_in(directory_.path())) {
    if (event.kind == 7) starts.push_back(event.step);
  }
  EXPECT_THAT(starts, ElementsAre(0, 5));
}

TEST_F(Restart, TheNewFileSaysAgainWhichPluginsThereAre) {
  std::filesystem::remove(independent::files_in(directory_.path())[0]);
  EXPECT_EQ(read(Rule::kPerTag).at("text").plugin, "text");
  EXPECT_EQ(read(Rule::kPerTag).at("tensor").plugin, "pr_curves");
}

TEST_F(IndependentReading, AGraphIsInAnEventOfItsOwn) {
  const auto writer = open();
  writer->add_graph("graph", 4);
  proto::RunMetadata metadata;
  metadata.mutable_step_stats()->add_dev_stats()->set_device("cpu");
  writer->add_run_metadata(metadata, "step 5", 5);
  writer->close();
  const auto events = independent::events_in(directory_.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, 3u);
  EXPECT_EQ(events[0].contents, "brain.Event:2");
  EXPECT_EQ(events[1].kind, 4u);
  EXPECT_EQ(events[1].contents, "graph");
  EXPECT_EQ(field_of(events[2].contents, 1).bytes, "step 5");
  EXPECT_EQ(field_of(events[2].contents, 2).bytes, metadata.SerializeAsString());
}

// The second and third record of the format page's example.
TEST(IndependentReader, ReadsWhatTensorBoardsWriterWrote) {
  const unsigned char bytes[] = {
      0x10, 0,    0,    0,    0,    0,    0,    0,    0x95, 0xfb, 0xfe, 0x18, 0x09, 0,    0,    0,    0xeb, 0xa9,
      0xfd, 0xd7, 0x41, 0x10, 0x96, 0x01, 0x3a, 0x02, 0x08, 0x01, 0x0e, 0x58, 0x3e, 0xa1, 0x18, 0,    0,    0,
      0,    0,    0,    0,    0xa3, 0x7f, 0x4b, 0x22, 0x09, 0,    0,    0x80, 0x10, 0xaa, 0xfd, 0xd7, 0x41, 0x10,
      0x96, 0x01, 0x2a, 0x0a, 0x0a, 0x08, 0x0a, 0x01, 0x73, 0x15, 0,    0,    0x16, 0xc3, 0xe1, 0x2e, 0x83, 0x3a};
  testing::TemporaryDirectory directory;
  std::string file(reinterpret_cast<const char*>(bytes), sizeof bytes);
  std::ofstream(directory.file("x.tfevents")) << file;
  const Curves curves = CurveReader::read(directory.path(), Rule::kStart);
  EXPECT_THAT(curves.at("s").steps(), ElementsAre(150));
  EXPECT_EQ(curves.at("s").points[0].number, -150);

  file[file.size() - 5] ^= 1;
  std::ofstream(directory.file("x.tfevents")) << file;
  EXPECT_THAT(CurveReader::read(directory.path(), Rule::kStart), IsEmpty()) << "a wrong checksum";
}

// `found` is what TensorBoard itself, in both of its ways, found in the directory. Returns how many curves it has.
size_t expect_as_shown(const std::string& directory, const nlohmann::json& found) {
  const Curves by_start = CurveReader::read(directory, Rule::kStart);
  const Curves by_tag = CurveReader::read(directory, Rule::kPerTag);
  for (const auto& [tag, curve] : found["rustboard_rule_scalars"].items()) {
    EXPECT_EQ(by_tag.at(tag).plugin, "scalars");
    const auto steps = by_tag.at(tag).steps();
    EXPECT_EQ(steps.size(), curve["n"]) << directory << ' ' << tag;
    EXPECT_EQ(steps.front(), curve["first"][0][0]);
    EXPECT_EQ(steps.back(), curve["last"].back()[0]);
  }
  for (const auto& [tag, count] : found["legacy"]["scalars"].items()) {
    EXPECT_EQ(by_start.at(tag).points.size(), count) << directory << ' ' << tag;
  }
  for (const auto& [tag, curve] : found["histograms"].items()) EXPECT_EQ(by_tag.at(tag).plugin, "histograms");
  for (const auto& [tag, curve] : found["legacy_images"].items()) EXPECT_EQ(by_tag.at(tag).plugin, "images");
  return found["rustboard_rule_scalars"].size();
}

TEST(IndependentReader, ShowsOfGenuineFilesWhatTensorBoardShows) {  // TB-3, TB-4
  const char* folder = std::getenv("LONGHAUL_FIXTURES");
  LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
  const std::string root = join_path(folder, "events"), ending = ".expected.json";
  size_t curves = 0;
  for (const std::string& name : FileSystem::real().list(root)) {
    if (!name.ends_with(ending)) continue;
    const std::string fixture = join_path(root, name.substr(0, name.size() - ending.size()));
    const auto expected = nlohmann::json::parse(read_file(FileSystem::real(), join_path(root, name)));
    for (const auto& [run, found] : expected["runs"].items()) curves += expect_as_shown(join_path(fixture, run), found);
  }
  EXPECT_GE(curves, 30u);
}

}  // namespace
}  // namespace longhaul

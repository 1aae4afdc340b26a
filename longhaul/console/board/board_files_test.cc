#include <fmt/format.h>

#include <filesystem>

#include "longhaul/console/board/board_answers_fixture.h"
#include "longhaul/console/board/board_fixture.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/run_files.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/io/records/record.h"

namespace longhaul::console {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(BoardAnswersTest, AnEventWithATagThatIsNoTextIsLeftOutAndThatIsTold) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.scalar("\xff", 2, 1);
  run.scalar("loss", 3, 1);
  run.flush();
  look();
  EXPECT_EQ(curve("loss")["steps"], json({1, 3}));
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("1 records are no events"));
}

TEST_F(BoardAnswersTest, NoMemoryIsTakenForARecordThatIsTooLongAndTheOtherRunsAreRead) {
  std::string record;
  append_record(record, "x");
  const uint64_t length = uint64_t{1} << 40;
  record.replace(0, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
  const uint32_t crc = mask_crc32c(crc32c(record.substr(0, sizeof length)));
  record.replace(sizeof length, sizeof crc, reinterpret_cast<const char*>(&crc), sizeof crc);
  for (const std::string name : {"a", "b", "c"}) {
    WrittenRun run(path(name));
    run.start(0);
    run.scalar("loss", 1, 1);
    run.flush();
    if (name != "c") run.append(record.substr(0, kRecordHeaderBytes));
    if (name == "b") std::filesystem::resize_file(run.event_file(), length + 1000);  // it takes no room on the disk
  }
  look();
  const json runs = get("/runs.json")["runs"];
  EXPECT_THAT(runs[0]["problems"], IsEmpty()) << "the rest may still be written";
  EXPECT_THAT(runs[1]["problems"].dump(), HasSubstr("has 1099511627776 bytes, 67108864 are the limit"));
  for (const json& run : runs) EXPECT_EQ(run["scalars"][0]["last"], 1);
}

TEST_F(BoardAnswersTest, AnEventIsReadAgainWhereItStood) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 0.5);
  run.scalar("loss", 2, 0.25);
  run.flush();
  FileSystem& disk = FileSystem::real();
  std::vector<uint64_t> offsets;
  const auto note = [&](const proto::Event&, const EventPlace& place) { return offsets.push_back(place.offset), true; };
  EXPECT_EQ(RunFiles(disk, path("a")).read(note), RunFiles::End::kRead);
  const std::string file = run.event_file(), gone = file + "x";
  const proto::Event event = event_in(disk, {file, offsets.back()});
  EXPECT_EQ(event.step(), 2);
  EXPECT_EQ(event.summary().value(0).tag(), "loss");
  EXPECT_THROW(event_in(disk, {file, 1 << 20}), NotFoundError);
  EXPECT_THROW(event_in(disk, {gone, 0}), NotFoundError);
  EXPECT_THROW(event_in(disk, {file, offsets.back() + 3}), DataLossError);
}

TEST_F(BoardAnswersTest, AFileThatCannotBeReadForAWhileIsReadOnThen) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.flush();
  look();
  std::filesystem::rename(run.event_file(), path("aside"));
  ASSERT_EQ(::mkfifo(run.event_file().c_str(), 0600), 0);
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("events.out.tfevents"));
  std::filesystem::rename(path("aside"), run.event_file());
  run.scalar("loss", 2, 1);
  run.flush();
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"], IsEmpty());
  EXPECT_EQ(curve("loss")["steps"], json({1, 2}));
}

// As a network file system may show a file that grows.
TEST_F(BoardAnswersTest, ATailOfZerosThatIsFilledLaterIsRead) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.flush();
  const auto size = std::filesystem::file_size(run.event_file());
  run.append(std::string(100, '\0'));
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("corrupted record"));
  std::filesystem::resize_file(run.event_file(), size);
  run.scalar("loss", 2, 1);
  run.flush();
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"], IsEmpty());
  EXPECT_EQ(curve("loss")["steps"], json({1, 2}));
}

TEST_F(BoardAnswersTest, AFileThatIsReplacedIsReadAnew) {
  const auto write = [&](double value, int64_t last) {
    WrittenRun run(path("a"));
    std::filesystem::remove(path("a/events.out.tfevents.1763721934.host"));
    run.start(0);
    for (int64_t step = 1; step <= last; ++step) {
      proto::Summary summary = scalar_summary("loss", static_cast<float>(value));
      *summary.add_value() = text_summary("t", std::string(100, 'x')).value(0);  // the same at the end of each event
      run.summary(step, summary);
    }
    run.flush();
    look();
  };
  write(1, 2);
  for (const int64_t last : {2, 8, 3}) {
    write(static_cast<double>(last), last);
    EXPECT_EQ(curve("loss")["values"], json(std::vector<double>(static_cast<size_t>(last), static_cast<double>(last))));
  }
}

TEST_F(BoardAnswersTest, ARunThatCannotBeReadIsToldAndTheOthersAreShown) {
  write_demo_runs(directory_.path());
  look();
  files_.locked = path("faster");
  look();
  EXPECT_THAT(get("/runs.json")["runs"][1]["problems"].dump(), HasSubstr("Permission denied"));
  const json options = get("/options.json", {{"runs", "0,1"}});
  EXPECT_EQ(options["runs"][0]["source"], "model.ckpt-1000");
  EXPECT_THAT(options["runs"][1]["problem"].get<std::string>(), HasSubstr("Permission denied"));
  EXPECT_THAT(options["options"], Not(IsEmpty()));
  EXPECT_THAT(get("/checkpoints.json", {{"run", "1"}})["error"].get<std::string>(), HasSubstr("Permission denied"));
  files_.locked.clear();
  look();
  EXPECT_THAT(get("/runs.json")["runs"][1]["problems"], IsEmpty());
}

TEST_F(BoardAnswersTest, AReadThatHangsIsTold) {
  write_demo_runs(directory_.path());
  look();
  files_.slow = path("faster");
  json during;
  files_.while_listing = [&] {
    files_.slow.clear();
    clock_.advance(Seconds{60});
    during = get("/runs.json")["notes"];
  };
  look();
  EXPECT_THAT(during.dump(), HasSubstr("to read faster has taken 60 s so far: nothing else is read meanwhile"));
  EXPECT_THAT(get("/runs.json")["notes"], IsEmpty());
}

TEST_F(BoardAnswersTest, ARunThatVanishesIsToldAndAnotherOfItsNameReplacesIt) {
  const auto write = [&](int64_t last) {
    WrittenRun run(path("a"), 1763721934 + static_cast<double>(last));
    run.start(0);
    for (int64_t step = 0; step <= last; ++step) run.scalar("loss", step, 1);
    run.flush();
    return run;
  };
  WrittenRun run = write(5);
  for (const double time : {1763721934.0, 1763721944.0}) {
    run.tell({.kind = RunEvent::Kind::kBegan, .time = time, .text = "process 7 started 1 boot b host h"});
    run.tell({.kind = RunEvent::Kind::kRestored, .time = time + 1, .step = 3, .text = "model.ckpt-3"});
  }
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["restarts"], SizeIs(1));
  std::filesystem::remove_all(path("a"));
  look();
  json listed = get("/runs.json");
  EXPECT_TRUE(listed["runs"][0]["gone"]);
  EXPECT_THAT(listed["runs"][0]["problems"].dump(), HasSubstr("the directory is gone"));
  EXPECT_EQ(curve("loss")["kept"], 6) << "what was read stays";
  write(2);
  look();
  EXPECT_FALSE(get("/runs.json")["runs"][0]["gone"]);
  EXPECT_EQ(curve("loss")["kept"], 3);
  EXPECT_THAT(get("/runs.json")["runs"][0]["restarts"], IsEmpty()) << "it has no journal";
}

TEST_F(BoardAnswersTest, RunsThatAreGoneGiveTheirPlacesToNewOnes) {
  std::vector<std::string> old;
  for (size_t i = 0; i < kMostRuns; ++i) old.push_back(path(fmt::format("old{:03}", i)));
  for (const std::string& each : old) WrittenRun(each).checkpoint(1);
  look();
  WrittenRun(path("new")).checkpoint(1);
  std::filesystem::remove_all(old[0]);
  look();
  look();
  const json listed = get("/runs.json");
  ASSERT_THAT(listed["runs"], SizeIs(kMostRuns));
  EXPECT_EQ(listed["runs"][0]["name"], "new");
  EXPECT_THAT(listed["notes"], IsEmpty());
  std::filesystem::remove_all(old[1]);
  std::filesystem::create_directories(old[1]);  // it has no training, but is not gone either
  WrittenRun(path("newer")).checkpoint(1);
  look();
  EXPECT_THAT(get("/runs.json")["notes"].dump(), HasSubstr("1 new runs are left out"));
}

TEST_F(BoardAnswersTest, ADamagedFileIsToldAndItsBeginningShown) {
  WrittenRun run(path("a"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.flush();
  run.append(std::string(100, 'x'));
  look();
  EXPECT_THAT(get("/runs.json")["runs"][0]["problems"].dump(), HasSubstr("corrupted record"));
  EXPECT_EQ(curve("loss")["kept"], 1);
}

class BoardOfNothingTest : public BoardAnswersTest {
 protected:
  std::vector<std::string> directories() const override { return {directory_.file("later")}; }
};

TEST_F(BoardOfNothingTest, ADirectoryThatComesLaterIsWaitedFor) {
  look();
  EXPECT_THAT(get("/runs.json")["notes"][0].get<std::string>(), HasSubstr("later is not there yet"));
  EXPECT_EQ(reply("/scalars.json", {{"tag", "0"}, {"runs", "0"}}).status, 404);
  WrittenRun run(path("later"));
  run.start(0);
  run.scalar("loss", 1, 1);
  run.flush();
  look();
  EXPECT_EQ(get("/runs.json")["runs"][0]["name"], "later");
  EXPECT_THAT(get("/runs.json")["notes"], IsEmpty());
}

}  // namespace
}  // namespace longhaul::console

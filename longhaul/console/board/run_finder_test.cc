#include "longhaul/console/board/run_finder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "longhaul/console/board/board_limits.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunFinder : public ::testing::Test {
 protected:
  void put(const std::string& name) {
    const std::filesystem::path path = directory_.file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  FoundRuns find(const std::vector<std::string>& directories) { return find_runs(FileSystem::real(), directories); }
  static std::vector<std::string> names_of(const FoundRuns& found) {
    std::vector<std::string> names;
    for (const FoundRun& run : found.runs) names.push_back(run.name);
    return names;
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(RunFinder, FindsTrainingsBelowADirectoryByTheirFiles) {
  put("a/events.out.tfevents.1.host");
  put("b/run.journal");
  put("c/deep/checkpoint");
  put("c/deep/eval/model.ckpt-5.index");
  put("c/deep/eval/deeper/checkpoint");
  put("data/text.csv");
  put("a/.incoming/model.ckpt-1.index");
  const FoundRuns found = find({directory_.path() + "/"});
  EXPECT_THAT(names_of(found), ElementsAre("a", "b", "c/deep", "c/deep/eval"));
  EXPECT_EQ(found.runs[2].directory, directory_.file("c/deep"));
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST_F(RunFinder, NamesOfSeveralDirectoriesAreTheirPathsAndNoneIsThereTwice) {
  put("a/checkpoint");
  put("b/checkpoint");
  EXPECT_THAT(names_of(find({directory_.file("a"), directory_.file("b/"), directory_.path()})),
              ElementsAre(directory_.file("a"), directory_.file("b")));
  EXPECT_THAT(names_of(find({directory_.file("a")})), ElementsAre("a"));
}

TEST_F(RunFinder, WhatIsNotThereIsTold) {
  put("file");
  std::filesystem::create_directories(directory_.file("empty"));
  const FoundRuns found = find({directory_.file("none"), directory_.file("file"), directory_.file("empty")});
  EXPECT_THAT(found.runs, IsEmpty());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("/none is not there yet: it is waited for"),
                                       HasSubstr("/file is no directory"), HasSubstr("/empty has no training yet")));
}

TEST_F(RunFinder, ACircleOfLinksEnds) {
  put("a/checkpoint");
  std::filesystem::create_directory_symlink(directory_.path(), directory_.file("again"));
  EXPECT_THAT(names_of(find({directory_.path()})), Contains("a"));
}

TEST_F(RunFinder, ARunToWhichLinksLeadIsThereOnceWithItsOwnName) {
  put("exp42/checkpoint");
  std::filesystem::create_directory_symlink("exp42", directory_.file("before"));
  std::filesystem::create_directory_symlink(directory_.file("exp42"), directory_.file("latest"));
  std::filesystem::create_directory_symlink("..", directory_.file("exp42/up"));
  EXPECT_THAT(names_of(find({directory_.path()})), ElementsAre("exp42"));
}

TEST_F(RunFinder, ADirectoryMayHaveAnyName) {
  put("my.tfevents/a/checkpoint");
  put("x.data-1/run.journal");
  put("y.index/checkpoint");
  std::filesystem::create_directories(directory_.file("empty/checkpoint"));
  EXPECT_THAT(names_of(find({directory_.path()})), ElementsAre("my.tfevents/a", "x.data-1", "y.index"));
}

TEST_F(RunFinder, OfARunThatIsFoundTwiceNothingIsTold) {
  put("runs/a/checkpoint");
  const std::string runs = directory_.file("runs"), a = directory_.file("runs/a");
  EXPECT_THAT(find({runs, a, a, runs}).notes, IsEmpty());
  EXPECT_THAT(find({runs, a}).runs, SizeIs(1));
}

TEST_F(RunFinder, NotesAreAFewHoweverManyThereCouldBe) {
  std::vector<std::string> missing;
  for (int i = 0; i < 3000; ++i) missing.push_back(directory_.file("m" + std::to_string(i)));
  const FoundRuns found = find(missing);
  EXPECT_THAT(found.notes, SizeIs(kMostNotes + 1));
  EXPECT_EQ(found.notes.back(), "2950 more notes are left out");
}

// As in a directory that may be listed and not searched.
TEST_F(RunFinder, NoFileIsLookedAt) {
  put("a/checkpoint");
  for (int i = 0; i < 100; ++i) put("file" + std::to_string(i));
  class Counted : public testing::FaultyFileSystem {
   public:
    bool is_directory(const std::string& path) override { return ++asked, FaultyFileSystem::is_directory(path); }
    int asked = 0;
  } files;
  EXPECT_THAT(find_runs(files, {directory_.path()}).runs, SizeIs(1));
  EXPECT_EQ(files.asked, 1) << "for the directory itself";
}

TEST_F(RunFinder, MoreRunsThanABoardShowsAreTold) {
  for (size_t i = 0; i < kMostRuns + 3; ++i) put(fmt::format("r{:03}/checkpoint", i));
  const FoundRuns found = find({directory_.path()});
  EXPECT_THAT(found.runs, SizeIs(kMostRuns));
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("3 runs are left out")));
}

}  // namespace
}  // namespace longhaul::console

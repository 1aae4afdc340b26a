#include "longhaul/console/board/run_finder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "longhaul/console/board/board_limits.h"
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

TEST_F(RunFinder, MoreRunsThanABoardShowsAreTold) {
  for (size_t i = 0; i < kMostRuns + 3; ++i) put(fmt::format("r{:03}/checkpoint", i));
  const FoundRuns found = find({directory_.path()});
  EXPECT_THAT(found.runs, SizeIs(kMostRuns));
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("3 runs are left out")));
}

}  // namespace
}  // namespace longhaul::console

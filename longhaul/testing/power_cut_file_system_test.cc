#include "longhaul/testing/power_cut_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Leaves = PowerCut::Leaves;

class PowerCutFiles : public ::testing::Test {
 protected:
  PowerCutFiles() { disk.make_directories("/d"); }

  std::unique_ptr<WritableFile> write(const std::string& name, std::string_view contents, bool is_synced) {
    auto file = disk.create("/d/" + name);
    file->append(contents);
    if (is_synced) file->sync();
    return file;
  }
  std::vector<std::string> names_after(Leaves leaves) { return disk.after({leaves})->list("/d"); }
  std::string contents_after(const std::string& name, const PowerCut& cut) {
    return read_file(*disk.after(cut), "/d/" + name);
  }

  PowerCutFileSystem disk;
};

TEST_F(PowerCutFiles, WithoutACutAllIsThere) {
  write("a", "123", false);
  disk.rename("/d/a", "/d/b");
  disk.link("/d/b", "/d/c");
  EXPECT_THAT(disk.list("/d"), ElementsAre("b", "c"));
  EXPECT_EQ(read_file(disk, "/d/c"), "123");
  disk.remove("/d/b");
  EXPECT_THAT(disk.list("/d"), ElementsAre("c"));
  EXPECT_THROW(disk.open("/d/b"), NotFoundError);
  EXPECT_THROW(disk.create("/d/c", FileSystem::IfExists::kFail), AlreadyExistsError);
  EXPECT_THROW(disk.create("/elsewhere/c"), NotFoundError);
}

TEST_F(PowerCutFiles, ASyncedFileHasNoNameBeforeItsDirectoryIsSynced) {
  write("a", "123", true);
  EXPECT_THAT(names_after(Leaves::kNothing), IsEmpty());
  disk.sync_directory("/d");
  EXPECT_THAT(names_after(Leaves::kNothing), ElementsAre("a"));
}

TEST_F(PowerCutFiles, ANameDoesNotBringItsContents) {
  const auto file = write("a", "123", false);
  disk.sync_directory("/d");
  EXPECT_EQ(contents_after("a", {Leaves::kNothing}), "");
  EXPECT_EQ(contents_after("a", {Leaves::kNames}), "");
  EXPECT_EQ(contents_after("a", {Leaves::kContents}), "123");
  file->sync();
  file->append("456");
  EXPECT_EQ(contents_after("a", {Leaves::kNothing}), "123");
  EXPECT_EQ(contents_after("a", {Leaves::kAll}), "123456");
}

TEST_F(PowerCutFiles, AdditionsAndRemovalsMaySurviveWithoutEachOther) {
  write("old", "1", true);
  disk.sync_directory("/d");
  write("new", "2", true);
  disk.remove("/d/old");
  EXPECT_THAT(names_after(Leaves::kNothing), ElementsAre("old"));
  EXPECT_THAT(names_after(Leaves::kAdditions), ElementsAre("new", "old"));
  EXPECT_THAT(names_after(Leaves::kRemovals), IsEmpty());
  EXPECT_THAT(names_after(Leaves::kAll), ElementsAre("new"));
}

TEST_F(PowerCutFiles, ARenameHappensWholeOrNotAtAll) {
  write("from", "2", true);
  write("to", "1", true);
  disk.sync_directory("/d");
  disk.rename("/d/from", "/d/to");
  for (const PowerCut& cut : PowerCut::all(20)) {
    const auto after = disk.after(cut);
    EXPECT_THAT(after->list("/d"), AnyOf(ElementsAre("from", "to"), ElementsAre("to")));
    EXPECT_EQ(read_file(*after, "/d/to"), after->exists("/d/from") ? "1" : "2");
  }
}

TEST_F(PowerCutFiles, AJournalKeepsTheOrderOfNames) {
  for (const char* name : {"a", "b", "c"}) write(name, "1", true);
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto names = disk.after({Leaves::kFirst, seed})->list("/d");
    sizes.insert(names.size());
    EXPECT_THAT(names, AnyOf(IsEmpty(), ElementsAre("a"), ElementsAre("a", "b"), ElementsAre("a", "b", "c")));
  }
  EXPECT_THAT(sizes, SizeIs(4));
}

TEST_F(PowerCutFiles, AWriteMayBeTorn) {
  const auto file = write("a", "synced", true);
  disk.sync_directory("/d");
  file->append(std::string(2000, 'x'));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) seen.insert(contents_after("a", {Leaves::kSome, seed}));
  EXPECT_GT(seen.size(), 20u);
  EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), [](const auto& bytes) { return bytes.find('\0') != bytes.npos; }));
  for (const std::string& bytes : seen) EXPECT_TRUE(bytes.starts_with("synced"));
}

TEST_F(PowerCutFiles, TheSameCutLeavesTheSame) {
  write("a", std::string(5000, 'x'), false);
  disk.sync_directory("/d");
  EXPECT_EQ(contents_after("a", {Leaves::kSome, 7}), contents_after("a", {Leaves::kSome, 7}));
}

TEST_F(PowerCutFiles, WhatIsFoundAfterACutIsDurable) {
  write("a", "123", false);
  const auto after = disk.after({Leaves::kAll});
  EXPECT_EQ(read_file(*after->after({Leaves::kNothing}), "/d/a"), "123");
}

TEST_F(PowerCutFiles, HardLinksAreOfOneFile) {
  const auto file = write("a", "1", true);
  disk.link("/d/a", "/d/b");
  disk.sync_directory("/d");
  file->append("2");
  const auto after = disk.after({Leaves::kAll});
  after->create("/d/a")->append("new");
  EXPECT_EQ(read_file(*after, "/d/b"), "new");
}

TEST_F(PowerCutFiles, ADirectoryIsThereOnceItIsMade) {
  disk.make_directories("/d/e/f");
  const auto after = disk.after({Leaves::kNothing});
  EXPECT_TRUE(after->is_directory("/d/e/f"));
  EXPECT_THAT(after->list("/d"), ElementsAre("e"));
}

}  // namespace
}  // namespace longhaul::testing

#include "longhaul/checkpoint/crash_leftovers.h"

#include <gmock/gmock.h>

#include "longhaul/checkpoint/checkpoint_state.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CrashLeftovers : public ::testing::Test {
 protected:
  void put(const std::vector<std::string>& names) {
    for (const std::string& name : names) FileSystem::real().create(directory.file(name))->close();
  }
  std::vector<std::string> left_by(const std::string& basename) {
    remove_crash_leftovers(FileSystem::real(), directory.path(), basename);
    return FileSystem::real().list(directory.path());
  }

  testing::TemporaryDirectory directory;
};

TEST_F(CrashLeftovers, DataWithoutAnIndexGoes) {
  put({"m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.meta", "m.data-00000-of-00001"});
  EXPECT_THAT(left_by("m"), IsEmpty());
}

TEST_F(CrashLeftovers, WhatHasAnIndexStaysWhereverItLies) {
  put({"m-1.data-00000-of-00001", "m-1.index", "m-1.meta"});
  put({"m-2.aside.data-00000-of-00001", "m-2.aside.index"});
  put({"m-3.data-00000-of-00001", "m-3.index.corrupt"});
  const auto before = FileSystem::real().list(directory.path());
  EXPECT_EQ(left_by("m"), before);
}

TEST_F(CrashLeftovers, WhatIsAsideWithoutAnIndexGoes) {
  put({"m-2.aside.data-00000-of-00001", "m-2.data-00000-of-00001", "m-2.index"});
  EXPECT_THAT(left_by("m"), ElementsAre("m-2.data-00000-of-00001", "m-2.index"));
}

TEST_F(CrashLeftovers, ADeletionThatHadBegunIsFinished) {
  put({"m-1.data-00000-of-00002", "m-1.index", "m-1.meta", "m-2.data-00000-of-00001", "m-2.index"});
  put({"m-3.data-00000-of-00002", "m-3.index", "m-4.data-00000-of-00001", "m-4.index"});
  write_checkpoint_state(
      FileSystem::real(), directory.path(),
      {.model_checkpoint_path = directory.file("m-4"),
       .doomed_checkpoint_paths = {directory.file("m-1"), directory.file("m-2"), directory.file("m-9")}});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "m-2.data-00000-of-00001", "m-2.index", "m-3.data-00000-of-00002",
                                        "m-3.index", "m-4.data-00000-of-00001", "m-4.index"))
      << "m-2 is whole, and m-3 is damaged";
}

TEST_F(CrashLeftovers, AMetaGraphIsOfAnUncommittedSaveWhereItIsLaterThanAllOthers) {
  put({"m-4.meta", "m-6.meta"});
  EXPECT_THAT(left_by("m"), ElementsAre("m-4.meta", "m-6.meta")) << "perhaps there is nothing else to save";
  put({"m-5.data-00000-of-00001", "m-5.index"});
  EXPECT_THAT(left_by("m"), ElementsAre("m-4.meta", "m-5.data-00000-of-00001", "m-5.index"));
}

TEST_F(CrashLeftovers, OthersAreLeftAlone) {
  put({"m-1.meta", "m-x.data-00000-of-00001", "mm-1.data-00000-of-00001", "m-1.data-x", "notes.tmp0123456789abcdef"});
  const auto before = FileSystem::real().list(directory.path());
  EXPECT_EQ(left_by("m"), before);
}

TEST_F(CrashLeftovers, WithoutABasenameItIsWhateverHasAStep) {
  put({"a-1.data-00000-of-00001", "b-2.data-00000-of-00001", "c.data-00000-of-00001"});
  EXPECT_THAT(left_by(""), ElementsAre("c.data-00000-of-00001"));
}

TEST_F(CrashLeftovers, TemporaryFilesGo) {
  put({"checkpoint.tmp0123456789abcdef", "checkpoint.retention.tmp0123456789abcdef", "m-5.meta.tmp0123456789abcdef",
       "graph.pbtxt.tmp0123456789abcdef", "m-5.index.tempstate1.1", "checkpoint", "checkpoint.tmp12", "n-5.meta.tmp0"});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "checkpoint.tmp12", "n-5.meta.tmp0"));
}

TEST_F(CrashLeftovers, OfADirectoryThatIsNotThereThereAreNone) {
  EXPECT_NO_THROW(remove_crash_leftovers(FileSystem::real(), directory.file("none"), "m"));
}

}  // namespace
}  // namespace longhaul

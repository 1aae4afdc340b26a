#include "longhaul/checkpoint/directory/crash_leftovers.h"

#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CrashLeftovers : public ::testing::Test {
 protected:
  CrashLeftovers()
      : old_sink_(set_log_sink([this](LogLevel level, const std::string& message) {
          if (level >= LogLevel::kWarning) warnings_ += message;
        })) {}
  ~CrashLeftovers() override { set_log_sink(old_sink_); }

  void put(const std::vector<std::string>& names) {
    for (const std::string& name : names) FileSystem::real().create(directory.file(name))->close();
  }
  std::vector<std::string> left_by(const std::string& basename) {
    remove_crash_leftovers(FileSystem::real(), directory.path(), basename);
    data_without_index(FileSystem::real(), directory.path(), basename);
    return FileSystem::real().list(directory.path());
  }

  testing::TemporaryDirectory directory;
  std::string warnings_;
  LogSink old_sink_;
};

TEST_F(CrashLeftovers, DataGoesWhoseIndexDidNotGetItsName) {
  put({"m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.meta", "m-1.index.tempstate1.1"});
  put({"m.data-00000-of-00001", "m.index.tempstate1.2", "m-2.meta", "m-2.index.tempstate1.3"});
  EXPECT_THAT(left_by("m"), IsEmpty());
}

TEST_F(CrashLeftovers, OfASaveThatThisProcessHasUnderWayNothingGoes) {
  const std::string prefix = directory.file("m-1");
  const auto write = [&](float value, const auto& meanwhile) {
    BundleWriter writer(FileSystem::real(), prefix);
    writer.add("v", Tensor::scalar(value));
    writer.add_file(prefix + ".meta", "a graph");
    meanwhile();
    writer.finish_data();
    meanwhile();
    writer.commit();
  };
  for (const float value : {1.0f, 2.0f}) {  // the second one replaces the first
    EXPECT_NO_THROW(write(value, [&] {
      const auto before = FileSystem::real().list(directory.path());
      EXPECT_EQ(left_by("m"), before);
    }));
    EXPECT_EQ(BundleReader(FileSystem::real(), prefix).read("v").item<float>(), value);
  }
  put({"m-1.index.tempstate1.1", "m-1.aside.data-00000-of-00001"});
  EXPECT_THAT(left_by("m"), ElementsAre("m-1.data-00000-of-00001", "m-1.index", "m-1.meta"));
}

TEST_F(CrashLeftovers, AStateFileThatThisProcessIsWritingStays) {
  struct SweepsBeforeRename : testing::FaultyFileSystem {
    void rename(const std::string& from, const std::string& to) override {
      remove_crash_leftovers(FileSystem::real(), directory_name(to), "m");
      FaultyFileSystem::rename(from, to);
    }
  } files;
  EXPECT_NO_THROW(write_checkpoint_state(files, directory.path(), {.model_checkpoint_path = directory.file("m-1")}));
  put({"checkpoint.tmp0123456789abcdef"});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint"));
}

TEST_F(CrashLeftovers, DataWithoutAnIndexThatNoSaveHasAnnouncedStaysAndIsNamed) {
  put({"m-1.data-00000-of-00001", "m-1.meta", "m-7.meta", "m-2.aside.data-00000-of-00001"});
  const auto before = FileSystem::real().list(directory.path());
  EXPECT_EQ(left_by("m"), before);
  EXPECT_THAT(warnings_, HasSubstr("m-1.data-00000-of-00001, m-2.aside.data-00000-of-00001"));
}

TEST_F(CrashLeftovers, WhatWasCommittedIsNoLeftoverThoughItsIndexIsLost) {
  put({"m-1.data-00000-of-00001", "m-1.meta", "m-2.data-00000-of-00001", "m-3.data-00000-of-00001"});
  put({"m-2.index.tempstate1.1"});  // whose it is: of a save under the same name, after the loss
  write_checkpoint_state(FileSystem::real(), directory.path(),
                         {.model_checkpoint_path = directory.file("m-2"),
                          .all_model_checkpoint_paths = {directory.file("m-1"), directory.file("m-2")}});
  write_retention(FileSystem::real(), directory.path(), {{directory.file("m-3"), {.pinned = true}}});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "checkpoint.retention", "m-1.data-00000-of-00001", "m-1.meta",
                                        "m-2.data-00000-of-00001", "m-3.data-00000-of-00001"));
}

TEST_F(CrashLeftovers, OfASaveThatWasToReplaceACheckpointThatOneStays) {
  put({"m-1.data-00000-of-00001", "m-1.index.tempstate1.1", "m-1.aside.data-00000-of-00001", "m-1.aside.index"});
  write_checkpoint_state(FileSystem::real(), directory.path(), {.model_checkpoint_path = directory.file("m-1")});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "m-1.aside.data-00000-of-00001", "m-1.aside.index"));
}

TEST_F(CrashLeftovers, OfACopyThatDidNotEndNothingStays) {
  FileSystem::real().make_directories(directory.file(kIncoming));
  put({"m-1.data-00000-of-00001", "m-1.meta", ".incoming/m-1.index"});
  write_checkpoint_state(FileSystem::real(), directory.path(), {.model_checkpoint_path = directory.file("m-1")});
  EXPECT_THAT(left_by("m"), ElementsAre(kIncoming, "checkpoint"));
}

TEST_F(CrashLeftovers, AFolderAmongCopiesUnderWayAnnouncesNone) {
  FileSystem::real().make_directories(directory.file(kIncoming) + "/m-1.index");
  put({"m-1.data-00000-of-00001"});
  EXPECT_THAT(left_by("m"), ElementsAre(kIncoming, "m-1.data-00000-of-00001"));
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
       .paths_marked_for_deletion = {directory.file("m-1"), directory.file("m-2"), directory.file("m-9")}});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "m-2.data-00000-of-00001", "m-2.index", "m-3.data-00000-of-00002",
                                        "m-3.index", "m-4.data-00000-of-00001", "m-4.index"))
      << "m-2 is whole, and m-3 is damaged";
}

TEST_F(CrashLeftovers, ADeletionThatHasTakenTheIndexIsFinished) {
  put({"m-1.data-00000-of-00002", "m-1.meta", "m-2.meta", "n-3.data-00000-of-00001", "notes.meta", "m-4.meta"});
  write_checkpoint_state(FileSystem::real(), directory.path(),
                         {.model_checkpoint_path = directory.file("m-9"),
                          .paths_marked_for_deletion = {directory.file("m-1"), directory.file("m-2"),
                                                        directory.file("n-3"), directory.file("notes")}});
  write_retention(FileSystem::real(), directory.path(), {{directory.file("m-4"), {.fallen_out = true}}});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "checkpoint.retention", "notes.meta"))
      << "of another name, only what is recognised as a checkpoint's";
}

TEST_F(CrashLeftovers, WhatIsAnnouncedIsRemovedDurablyBeforeTheAnnouncement) {
  put({"m-1.data-00000-of-00001", "m-1.index.tempstate1.1"});
  testing::FaultyFileSystem files;
  remove_crash_leftovers(files, directory.path(), "m");
  std::vector<std::string> done;
  for (const std::string& operation : files.operations()) done.push_back(base_name(operation));
  EXPECT_THAT(done, ElementsAre("remove m-1.data-00000-of-00001", base_name(directory.path()),
                                "remove m-1.index.tempstate1.1"));
}

TEST_F(CrashLeftovers, OthersAreLeftAlone) {
  put({"m-1.meta", "m-x.data-00000-of-00001", "mm-1.data-00000-of-00001", "m-1.data-x", "notes.tmp0123456789abcdef"});
  const auto before = FileSystem::real().list(directory.path());
  EXPECT_EQ(left_by("m"), before);
}

TEST_F(CrashLeftovers, WithoutABasenameItIsWhateverHasAStep) {
  put({"a-1.data-00000-of-00001", "b-2.data-00000-of-00001", "c.data-00000-of-00001"});
  put({"a-1.index.tempstate1.1", "b-2.index.tempstate1.1"});
  EXPECT_THAT(left_by(""), ::testing::Not(::testing::Contains("a-1.data-00000-of-00001")));
  EXPECT_THAT(left_by(""), ::testing::Contains("c.data-00000-of-00001"));
}

TEST_F(CrashLeftovers, TemporaryFilesGo) {
  put({"checkpoint.tmp0123456789abcdef", "checkpoint.retention.tmp0123456789abcdef", "m-5.meta.tmp0123456789abcdef",
       "graph.pbtxt.tmp0123456789abcdef", "m-5.index.tempstate1.1", "checkpoint", "checkpoint.tmp12", "n-5.meta.tmp0"});
  EXPECT_THAT(left_by("m"), ElementsAre("checkpoint", "checkpoint.tmp12", "n-5.meta.tmp0"));
}

TEST_F(CrashLeftovers, TemporaryFilesGoWhateverTheBasename) {
  put({"m-5.index.tempstate1.1", "m-5.data-00000-of-00001.tempstate1.2", "m-5.meta.tempstate1.3",
       "n-7.aside.index.tempstate1.4", "m.index.tempstate1.5", "m-5.other.tempstate1.6", "m-5.index.tempstatex"});
  EXPECT_THAT(left_by(""), ElementsAre("m-5.index.tempstatex", "m-5.other.tempstate1.6", "m.index.tempstate1.5"));
}

TEST_F(CrashLeftovers, OfADirectoryThatIsNotThereThereAreNone) {
  EXPECT_NO_THROW(remove_crash_leftovers(FileSystem::real(), directory.file("none"), "m"));
}

}  // namespace
}  // namespace longhaul

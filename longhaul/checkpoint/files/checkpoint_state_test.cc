#include "longhaul/checkpoint/files/checkpoint_state.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "longhaul/base/log.h"
#include "longhaul/io/files/working_directory_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/memory_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using Status = ReadCheckpointState::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointStateTest : public ::testing::Test {
 protected:
  ReadCheckpointState read_text(const std::string& text) {
    write_file_atomically(files_, directory_.file("checkpoint"), text);
    return read_checkpoint_state(files_, directory_.path());
  }
  std::string text() { return read_file(files_, directory_.file("checkpoint")); }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

// The text is that of keras-gpt-2's tests/toy_checkpoint, written by TensorFlow.
TEST_F(CheckpointStateTest, IsTheTextThatTensorFlowWrites) {  // CS-1, CB-40, PR-1
  write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = "model.ckpt"});
  EXPECT_EQ(text(), "model_checkpoint_path: \"model.ckpt\"\nall_model_checkpoint_paths: \"model.ckpt\"\n");
}

TEST_F(CheckpointStateTest, EverythingComesBack) {  // PR-1
  const CheckpointState state{.model_checkpoint_path = "/elsewhere/m-2",
                              .all_model_checkpoint_paths = {"/elsewhere/m \"1\"\n", "/elsewhere/m-2"},
                              .all_model_checkpoint_timestamps = {1e9 + 0.25, 1.7e9},
                              .last_preserved_timestamp = 5};
  write_checkpoint_state(files_, directory_.path(), state);
  const auto read = read_checkpoint_state(files_, directory_.path());
  EXPECT_EQ(read.status, Status::kRead);
  EXPECT_EQ(read.state, state);
}

TEST_F(CheckpointStateTest, WhatIsBeingDeletedStandsInComments) {
  const CheckpointState state{.model_checkpoint_path = directory_.file("m-3"),
                              .all_model_checkpoint_paths = {directory_.file("m-3")},
                              .paths_marked_for_deletion = {directory_.file("m-1"), directory_.file("m 2")}};
  write_checkpoint_state(files_, directory_.path(), state, true);
  EXPECT_THAT(text(), ::testing::EndsWith("\"m-3\"\n# being deleted: m-1\n# being deleted: m 2\n"));
  EXPECT_EQ(read_checkpoint_state(files_, directory_.path()).state, state);
  EXPECT_THAT(read_text("model_checkpoint_path: \"m\"\n# being deleted: \n# being\n").state.paths_marked_for_deletion,
              ::testing::IsEmpty());
}

TEST_F(CheckpointStateTest, NamesThatCanBeNoFilesArePassedOver) {
  std::string log;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { log += message; });
  const auto read = read_text("model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\\000x\"\n" +
                              fmt::format("all_model_checkpoint_paths: \"{}\"\n", std::string(5000, 'm')) +
                              "all_model_checkpoint_paths: \"m-2\"\nall_model_checkpoint_timestamps: 1\n"
                              "all_model_checkpoint_timestamps: 2\nall_model_checkpoint_timestamps: 3\n");
  EXPECT_THAT(read.state.all_model_checkpoint_paths, ElementsAre(directory_.file("m-2")));
  EXPECT_THAT(read.state.all_model_checkpoint_timestamps, ElementsAre(3));
  EXPECT_THAT(log, HasSubstr("2 lines are skipped because a checkpoint cannot have such a name"));
  EXPECT_LT(log.size(), 1000u);
  EXPECT_EQ(read_text("model_checkpoint_path: \"m\\000\"\n").status, Status::kUnusable);
  set_log_sink(before);
}

TEST_F(CheckpointStateTest, ATooLargeOneIsOfNoUse) {
  const auto read = read_text("model_checkpoint_path: \"m\"\n" + std::string(size_t{4} << 20, '#'));
  EXPECT_EQ(read.status, Status::kUnusable);
  EXPECT_THAT(read.why, HasSubstr("at most 4194304 are allowed"));
}

TEST_F(CheckpointStateTest, APipeInItsPlaceIsOfNoUseAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(directory_.file("checkpoint").c_str(), 0600), 0);
  EXPECT_EQ(read_checkpoint_state(files_, directory_.path()).status, Status::kUnusable);
}

TEST_F(CheckpointStateTest, ADirectoryInItsPlaceIsNamed) {
  files_.make_directories(directory_.file("checkpoint"));
  EXPECT_THAT([&] { write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = "m"}); },
              ::testing::ThrowsMessage<FailedPreconditionError>(HasSubstr("checkpoint is a directory")));
}

TEST_F(CheckpointStateTest, TheLatestIsTheLastOfAllPaths) {  // CS-3
  const auto all = [](std::vector<std::string> paths) {
    return make_checkpoint_state("/d",
                                 {.model_checkpoint_path = "/d/m-3", .all_model_checkpoint_paths = std::move(paths)})
        .all_model_checkpoint_paths;
  };
  EXPECT_THAT(all({}), ElementsAre("/d/m-3"));
  EXPECT_THAT(all({"/d/m-2"}), ElementsAre("/d/m-2", "/d/m-3"));
  EXPECT_THAT(all({"/d/m-2", "/d/m-3"}), ElementsAre("/d/m-2", "/d/m-3"));
}

TEST_F(CheckpointStateTest, TheLatestIsAppendedForTheFileAloneAndWithoutAWord) {  // unlike CS-3
  const CheckpointState given{.model_checkpoint_path = "/d/m-3", .all_model_checkpoint_paths = {"/d/m-2"}};
  int lines = 0;
  const LogSink before = set_log_sink([&](LogLevel, const std::string&) { ++lines; });
  make_checkpoint_state("/d", given);
  set_log_sink(before);
  EXPECT_EQ(lines, 0);
  EXPECT_THAT(given.all_model_checkpoint_paths, ElementsAre("/d/m-2"));
}

TEST_F(CheckpointStateTest, PathsInARelativeDirectoryAreRelativeToIt) {  // CS-2
  const CheckpointState state = make_checkpoint_state(
      "train", {.model_checkpoint_path = "train/m-2", .all_model_checkpoint_paths = {"/abs/m-1", "train/m-2"}});
  EXPECT_EQ(state.model_checkpoint_path, "m-2");
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("/abs/m-1", "m-2"));
  EXPECT_EQ(make_checkpoint_state("./train/", {.model_checkpoint_path = "train/m"}).model_checkpoint_path, "m");
  EXPECT_EQ(make_checkpoint_state("/train", {.model_checkpoint_path = "/train/m"}).model_checkpoint_path, "/train/m");
}

TEST_F(CheckpointStateTest, MixedPathsAreReadAsTheCallerNamesTheirDirectory) {  // CS-4
  testing::MemoryFileSystem files;
  files.put(
      "train/checkpoint",
      "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"/abs/m-1\"\nall_model_checkpoint_paths: \"m-2\"");
  const CheckpointState state = read_checkpoint_state(files, "train").state;
  EXPECT_EQ(state.model_checkpoint_path, "train/m-2");
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("/abs/m-1", "train/m-2"));
}

TEST_F(CheckpointStateTest, MixedPathsSurviveARoundTrip) {  // CS-4
  const WorkingDirectory here(directory_.path());
  files_.make_directories("train");
  write_checkpoint_state(
      files_, "train", {.model_checkpoint_path = "train/m-2", .all_model_checkpoint_paths = {"/abs/m-1", "train/m-2"}});
  EXPECT_THAT(read_file(files_, "train/checkpoint"), HasSubstr("model_checkpoint_path: \"m-2\""));
  const CheckpointState state = read_checkpoint_state(files_, "train").state;
  EXPECT_EQ(state.model_checkpoint_path, "train/m-2");
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("/abs/m-1", "train/m-2"));
}

TEST_F(CheckpointStateTest, RelativePathsLetTheDirectoryMove) {  // CS-5
  write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = directory_.file("m-2")}, true);
  EXPECT_THAT(text(), HasSubstr("model_checkpoint_path: \"m-2\""));
  EXPECT_EQ(read_checkpoint_state(files_, directory_.path()).state.model_checkpoint_path, directory_.file("m-2"));
}

TEST_F(CheckpointStateTest, RelativePathsAreCompletedAndNotTidied) {  // CS-7
  const auto read = read_text("model_checkpoint_path: \"./model.ckpt-687529\"");
  EXPECT_EQ(read.state.model_checkpoint_path, directory_.path() + "/./model.ckpt-687529");
}

TEST_F(CheckpointStateTest, WhatCannotBeUsedIsSaidAndNotThrown) {  // unlike CS-6
  EXPECT_EQ(read_checkpoint_state(files_, directory_.path()).status, Status::kMissing);
  EXPECT_EQ(read_checkpoint_state(files_, directory_.file("absent")).status, Status::kMissing);
  for (const char* bad : {"", "model_checkpoint_path", "\x01\x02\x03", "all_model_checkpoint_paths: \"m\""}) {
    const auto read = read_text(bad);
    EXPECT_EQ(read.status, Status::kUnusable) << bad;
    EXPECT_THAT(read.why, HasSubstr("Invalid checkpoint state loaded from " + directory_.path()));
  }
  files_.remove(directory_.file("checkpoint"));
  files_.make_directories(directory_.file("checkpoint"));
  EXPECT_EQ(read_checkpoint_state(files_, directory_.path()).status, Status::kUnusable);
  files_.remove(directory_.file("checkpoint"));
  std::filesystem::create_symlink(directory_.file("absent"), directory_.file("checkpoint"));
  const auto dangling = read_checkpoint_state(files_, directory_.path());
  EXPECT_EQ(dangling.status, Status::kUnusable);
  EXPECT_THAT(dangling.why, HasSubstr("is a link to a missing file"));
}

TEST_F(CheckpointStateTest, NoPrefixOfAStateIsReadAsAnotherOne) {
  const std::string whole = "model_checkpoint_path: \"m-22\"\nall_model_checkpoint_paths: \"m-22\"\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto read = read_text(whole.substr(0, size));
    EXPECT_TRUE(read.status == Status::kUnusable || read.state.model_checkpoint_path == directory_.file("m-22"))
        << size;
  }
}

TEST_F(CheckpointStateTest, FieldsOfNewerWritersAreSkipped) {
  const auto read = read_text("model_checkpoint_path: \"m\"\nsome_new_field: { a: 1 }\n");
  EXPECT_EQ(read.status, Status::kRead);
}

TEST_F(CheckpointStateTest, DeepNestingInAFieldOfANewerWriterIsRefused) {
  for (const char* opening : {"a{", "a:{", "a<", "a:[", "a:[{b:"}) {
    std::string text = "model_checkpoint_path: \"m\"\n";
    while (text.size() < 4'000'000) text += opening;
    EXPECT_EQ(read_text(text).status, Status::kUnusable) << opening;
  }
}

TEST_F(CheckpointStateTest, RefusesContradictions) {  // CS-8
  EXPECT_THROW(
      make_checkpoint_state("/d", {.model_checkpoint_path = "/d/m", .all_model_checkpoint_timestamps = {1, 2}}),
      InvalidArgumentError);
  try {
    write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = directory_.file("checkpoint")});
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("conflicts with path used for checkpoint state"));
  }
}

TEST_F(CheckpointStateTest, IsSyncedBeforeAndAfterItsRename) {  // unlike CS-1
  testing::FaultyFileSystem faulty;
  write_checkpoint_state(faulty, directory_.path(), {.model_checkpoint_path = directory_.file("m-1")});
  const std::vector<std::string> done = faulty.operations();
  ASSERT_EQ(done.size(), 6u);
  EXPECT_THAT(done[0], ::testing::StartsWith("create checkpoint.tmp"));
  const std::string temporary = done[0].substr(std::string("create ").size());
  EXPECT_THAT(done[1], ::testing::StartsWith("append " + temporary + " "));
  EXPECT_EQ(done[2], "sync " + temporary);
  EXPECT_EQ(done[3], "close " + temporary);
  EXPECT_EQ(done[4], "rename " + temporary + " checkpoint");
  EXPECT_EQ(done[5], "sync_directory " + directory_.path());
}

TEST_F(CheckpointStateTest, AFailedReplacementLeavesTheOldState) {  // CS-1
  for (int n = 0;; ++n) {
    write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = directory_.file("old")});
    testing::FaultyFileSystem faulty;
    faulty.fail_operation(n, testing::FaultyFileSystem::Fault::kForGood);
    try {
      write_checkpoint_state(faulty, directory_.path(), {.model_checkpoint_path = directory_.file("new")});
      break;
    } catch (const Error&) {
      const auto path = read_checkpoint_state(files_, directory_.path()).state.model_checkpoint_path;
      EXPECT_TRUE(path == directory_.file("old") || path == directory_.file("new")) << n << path;
    }
  }
}

}  // namespace
}  // namespace longhaul

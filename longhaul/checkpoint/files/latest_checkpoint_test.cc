#include "longhaul/checkpoint/files/latest_checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A directory of checkpoints whose files are a minute older than each other in the order of the calls.
class LatestCheckpoint : public ::testing::Test {
 protected:
  LatestCheckpoint() : old_sink_(set_log_sink([](LogLevel, const std::string&) {})) {}
  ~LatestCheckpoint() override { set_log_sink(old_sink_); }

  std::string path(const std::string& name) const { return directory_.file(name); }
  void save(const std::string& name) {
    BundleWriter writer(files_, path(name));
    writer.add("v", Tensor::scalar(1.0f));
    writer.finish();
    write_file_atomically(files_, path(name + ".meta"), "meta");
    stamp(name + ".index");
  }
  void write_state(const std::string& latest, std::vector<std::string> all = {}) {
    for (auto& name : all) name = path(name);
    write_checkpoint_state(files_, directory_.path(),
                           {.model_checkpoint_path = path(latest), .all_model_checkpoint_paths = std::move(all)});
    stamp("checkpoint");
  }
  void stamp(const std::string& name) {
    clock_ += std::chrono::minutes(1);
    std::filesystem::last_write_time(path(name), clock_);
  }
  void damage(const std::string& name) { write_file_atomically(files_, data_path(path(name), 0, 1), "dama"); }
  std::vector<std::string> candidates(const std::string& basename = "") {
    auto names = checkpoint_candidates(files_, directory_.path(), basename);
    for (auto& name : names) name = base_name(name);
    return names;
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  std::filesystem::file_time_type clock_ = std::filesystem::file_time_type::clock::now() - std::chrono::hours(9);
  LogSink old_sink_;
};

TEST_F(LatestCheckpoint, IsTheOneThatTheStateNames) {  // CS-9
  for (const char* name : {"m-1", "m-2", "m-3"}) save(name);
  write_state("m-2", {"m-3", "m-1", "m-2"});
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-2"));
  EXPECT_THAT(candidates(), ElementsAre("m-2", "m-1", "m-3"));
}

TEST_F(LatestCheckpoint, LiesInADirectoryThatIsNamedFromTheWorkingDirectory) {  // CS-12
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  BundleWriter writer(files_, "train/m-3");
  writer.add("v", Tensor::scalar(2.0f));
  writer.finish();
  write_checkpoint_state(files_, "train", {.model_checkpoint_path = "train/m-3"});
  const auto latest = latest_checkpoint(files_, "train/");
  const float value = BundleReader(files_, latest.value_or("")).read("v").item<float>();
  std::filesystem::current_path(before);
  EXPECT_EQ(latest, "train/m-3");
  EXPECT_EQ(value, 2.0f);
}

TEST_F(LatestCheckpoint, MayHaveAnyCharactersInItsName) {  // unlike SA-29
  for (const char* name : {"m[1]?*-1", "m1xx-1"}) save(name);
  EXPECT_TRUE(checkpoint_exists(files_, path("m[1]?*-1")));
  EXPECT_FALSE(checkpoint_exists(files_, path("m*-1")));
  remove_checkpoint(files_, path("m[1]?*-1"));
  EXPECT_FALSE(checkpoint_exists(files_, path("m[1]?*-1")));
  EXPECT_TRUE(checkpoint_exists(files_, path("m1xx-1")));
}

TEST_F(LatestCheckpoint, IsAnOlderOneWhereTheStatesIsGone) {  // unlike CS-9
  for (const char* name : {"m-1", "m-2", "m-3"}) save(name);
  write_state("m-3", {"m-1", "m-2", "m-3"});
  remove_checkpoint(files_, path("m-3"));
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-2"));
}

// What is logged, while one lives.
class Warnings {
 public:
  Warnings() : old_sink_(set_log_sink([this](LogLevel, const std::string& line) { text += line + '\n'; })) {}
  ~Warnings() { set_log_sink(old_sink_); }
  std::string text;

 private:
  const LogSink old_sink_;
};

TEST_F(LatestCheckpoint, IsTheNewestThereWhereTheOneThatTheStateNamesIsNot) {  // unlike CS-9
  for (const char* name : {"m-1", "m-2", "m-3", "other-9"}) save(name);
  for (const char* latest : {"../x", ".", "m-8", "/absent/m-8"}) {
    write_file_atomically(files_, path("checkpoint"),
                          fmt::format("model_checkpoint_path: \"{}\"\nall_model_checkpoint_paths: \"m-1\"\n"
                                      "all_model_checkpoint_paths: \"m-2\"\n",
                                      latest));
    const Warnings warnings;
    EXPECT_THAT(candidates(), ElementsAre("m-3", "m-2", "m-1", "other-9")) << latest;
    EXPECT_THAT(warnings.text, HasSubstr(fmt::format("{} names {} as the latest checkpoint, but it does not exist",
                                                     path("checkpoint"), join_path(directory_.path(), latest))));
    EXPECT_THAT(warnings.text, HasSubstr("using the newest existing one instead, " + path("m-3")));
  }
}

TEST_F(LatestCheckpoint, WithoutItsDataIsSaidToLackFiles) {
  for (const char* name : {"m-1", "m-2"}) save(name);
  write_state("m-2", {"m-1", "m-2"});
  files_.remove(data_path(path("m-2"), 0, 1));
  const Warnings warnings;
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-1"));
  EXPECT_THAT(warnings.text, HasSubstr("some of its files are missing"));
}

TEST_F(LatestCheckpoint, ThatWasRenamedAsDamagedIsNotToldOfAgain) {
  for (const char* name : {"m-9", "m-1", "m-2"}) save(name);  // somebody has gone back, before m-9
  write_state("m-2", {"m-1", "m-2"});
  files_.rename(index_path(path("m-2")), index_path(path("m-2")) + ".corrupt");
  const Warnings warnings;
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-1"));
  EXPECT_EQ(warnings.text, "");
}

TEST_F(LatestCheckpoint, IsSearchedForWhereThereIsNoUsableState) {  // unlike CS-6
  for (const char* name : {"m-9", "m-10", "m"}) save(name);
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-10"));
  write_file_atomically(files_, path("checkpoint"), "");
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-10"));
  write_state("gone");
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-10"));
}

TEST_F(LatestCheckpoint, IsTheOneCommittedJustBeforeACrashThatKeptItOutOfTheState) {
  save("m-1");
  write_state("m-1");
  save("m-2");
  save("other-3");
  EXPECT_THAT(candidates("m"), ElementsAre("m-2", "m-1"));
}

TEST_F(LatestCheckpoint, IsTheOneWithoutAStepWhereNothingElseIs) {
  save("m");
  save("other");
  EXPECT_THAT(candidates("m"), ElementsAre("m"));
  EXPECT_THAT(candidates(), ElementsAre()) << "of all names in a directory, only those with a step tell their order";
  save("m-1");
  EXPECT_THAT(candidates("m"), ElementsAre("m-1", "m"));
}

TEST_F(LatestCheckpoint, IsThatOfTheCopyInACopiedDirectory) {
  for (const char* name : {"m-1", "m-2", "m-3"}) save(name);
  write_state("m-3", {"m-1", "m-2", "m-3"});
  const testing::TemporaryDirectory copy;
  std::filesystem::copy(directory_.path(), copy.path());
  EXPECT_THAT(checkpoint_candidates(files_, copy.path()),
              ElementsAre(copy.file("m-3"), copy.file("m-2"), copy.file("m-1")));
  remove_checkpoint(files_, copy.file("m-3"));
  EXPECT_EQ(latest_checkpoint(files_, copy.path()), path("m-3")) << "what only the original has is taken from there";
}

TEST_F(LatestCheckpoint, OfACopyThatIsNotWholeTheOriginalDoesNotTakeThePlace) {
  for (const char* name : {"m-1", "m-2", "m-3"}) save(name);
  write_state("m-3", {"m-1", "m-2", "m-3"});
  for (const char* lost : {"m-3.index", "m-3.data-00000-of-00001"}) {
    const testing::TemporaryDirectory copy;
    std::filesystem::copy(directory_.path(), copy.path());
    files_.remove(copy.file(lost));
    const Warnings warnings;
    EXPECT_THAT(checkpoint_candidates(files_, copy.path()), ElementsAre(copy.file("m-2"), copy.file("m-1"))) << lost;
    EXPECT_THAT(warnings.text, HasSubstr("names " + copy.file("m-3") + " as the latest checkpoint, but"));
  }
}

TEST_F(LatestCheckpoint, IsOneCandidateHoweverItIsSpelled) {
  save("m-1");
  write_file_atomically(files_, path("checkpoint"), "model_checkpoint_path: \"./m-1\"");
  EXPECT_THAT(checkpoint_candidates(files_, directory_.path()), ElementsAre(directory_.path() + "/./m-1"));
}

// Another process deletes a checkpoint after this one has listed its directory.
class DeletingFileSystem : public testing::FaultyFileSystem {
 public:
  explicit DeletingFileSystem(std::string marked) : marked_for_deletion_(std::move(marked)) {}
  double modified_at(const std::string& path) override {
    remove_checkpoint(FileSystem::real(), marked_for_deletion_);
    return testing::FaultyFileSystem::modified_at(path);
  }

 private:
  const std::string marked_for_deletion_;
};

TEST_F(LatestCheckpoint, WhatIsDeletedMeanwhileIsLeftOut) {
  for (const char* name : {"m-1", "m-2"}) save(name);
  DeletingFileSystem files(path("m-2"));
  EXPECT_EQ(latest_checkpoint(files, directory_.path()), path("m-1"));
  save("m-2");
  EXPECT_EQ(checkpoint_mtimes(files, {path("m-2"), path("m-1")}).size(), 1u);
}

TEST_F(LatestCheckpoint, IsFoundAtOnceBesideAStateOfManyLines) {
  save("m-1");
  std::string text = "model_checkpoint_path: \"m-1\"\n";
  for (int i = 0; i < 90'000; ++i) text += fmt::format("all_model_checkpoint_paths: \"m-{}\"\n", i % 2 == 0 ? 1 : i);
  write_file_atomically(files_, path("checkpoint"), text);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-1"));
  write_file_atomically(files_, path("checkpoint"), text + text);  // over the limit
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-1"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8)) << "and a second or less, undisturbed";
}

TEST_F(LatestCheckpoint, IsNoneInAnEmptyOrAbsentDirectory) {
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), std::nullopt);
  EXPECT_EQ(latest_checkpoint(files_, path("absent")), std::nullopt);
}

TEST_F(LatestCheckpoint, IsWholeOrPassedOver) {  // unlike SA-50
  for (const char* name : {"m-1", "m-2", "m-3", "m-4", "m-5"}) save(name);
  write_state("m-5", {"m-3", "m-4", "m-5"});
  damage("m-5");
  files_.remove(data_path(path("m-4"), 0, 1));
  write_file_atomically(files_, index_path(path("m-3")), "no index");
  const IntactCheckpoint whole = newest_intact_checkpoint(files_, directory_.path(), "m");
  EXPECT_EQ(whole.prefix, path("m-2"));
  ASSERT_EQ(whole.skipped.size(), 2u);  // the one without data is no candidate at all
  EXPECT_EQ(whole.skipped[0].prefix, path("m-5"));
  EXPECT_THAT(whole.skipped[0].why, HasSubstr("Checksum does not match"));
  EXPECT_THAT(whole.skipped[1].why, HasSubstr("too short to be an sstable"));
}

TEST_F(LatestCheckpoint, NoneIsWhole) {
  save("m-1");
  damage("m-1");
  const IntactCheckpoint whole = newest_intact_checkpoint(files_, directory_.path(), "m");
  EXPECT_EQ(whole.prefix, std::nullopt);
  EXPECT_EQ(whole.skipped.size(), 1u);
}

TEST_F(LatestCheckpoint, FindsAllCommittedOnesByStep) {
  for (const char* name : {"m-10", "m-9", "m", "other-7"}) save(name);
  files_.remove(index_path(path("m-9")));
  write_file_atomically(files_, path("m-x.index"), "");
  const auto found = find_checkpoints(files_, directory_.path(), "m");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].prefix, path("m"));
  EXPECT_EQ(found[0].step, std::nullopt);
  EXPECT_EQ(found[1].prefix, path("m-10"));
  EXPECT_EQ(found[1].step, 10);
  EXPECT_EQ(find_checkpoints(files_, directory_.path(), "").size(), 3u);
}

TEST_F(LatestCheckpoint, AnIndexThatIsALinkToItselfOrToNothingHidesNoOther) {
  for (const char* name : {"m-1", "m-2", "m-3"}) save(name);
  files_.remove(index_path(path("m-2")));
  std::filesystem::create_symlink("m-2.index", index_path(path("m-2")));
  files_.remove(index_path(path("m-3")));
  std::filesystem::create_symlink("none", index_path(path("m-3")));
  EXPECT_EQ(find_checkpoints(files_, directory_.path(), "m").size(), 1u);
  EXPECT_EQ(latest_checkpoint(files_, directory_.path()), path("m-1"));
}

TEST_F(LatestCheckpoint, ExistsWithAllItsFiles) {  // unlike CS-10
  save("m-1");
  EXPECT_TRUE(checkpoint_exists(files_, path("m-1")));
  EXPECT_FALSE(checkpoint_exists(files_, path("m-2")));
  EXPECT_FALSE(checkpoint_exists(files_, directory_.path()));
  files_.rename(data_path(path("m-1"), 0, 1), data_path(path("m-1"), 0, 2));
  EXPECT_FALSE(checkpoint_exists(files_, path("m-1")));
  write_file_atomically(files_, data_path(path("m-1"), 1, 2), "");
  EXPECT_TRUE(checkpoint_exists(files_, path("m-1")));
  write_file_atomically(files_, path("notes"), "of an ordinary file, and a long one, which is no table of V1");
  EXPECT_FALSE(checkpoint_exists(files_, path("notes")));
}

TEST_F(LatestCheckpoint, TimesOfThoseThatExist) {  // CS-10
  save("m-1");
  save("m-2");
  const auto times = checkpoint_mtimes(files_, {path("m-1"), path("absent"), path("m-2")});
  ASSERT_EQ(times.size(), 2u);
  EXPECT_NEAR(times[1] - times[0], 60, 1e-3);
}

TEST_F(LatestCheckpoint, RemovalTakesAllFilesAndNoOthers) {  // CS-10
  save("m-1");
  save("m-10");
  write_file_atomically(files_, data_path(path("m-1"), 1, 2), "");
  remove_checkpoint(files_, path("m-1"));
  remove_checkpoint(files_, path("m-1"));
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("m-10.data-00000-of-00001", "m-10.index", "m-10.meta"));
}

TEST(MetaGraphFilename, LosesTheEndingOfAShard) {  // CS-11
  EXPECT_EQ(meta_graph_filename("m-5"), "m-5.meta");
  EXPECT_EQ(meta_graph_filename("m-5-00000-of-00002"), "m-5.meta");
  EXPECT_EQ(meta_graph_filename("m-5-?\?\?\?\?-of-00002", "txt"), "m-5.txt");
  EXPECT_EQ(meta_graph_filename("a-of-5"), "a-of-5.meta");
  EXPECT_EQ(meta_graph_filename("one-of-us"), "one-of-us.meta");
}

TEST(LiesIn, IsOfTheDirectoryItselfHoweverItIsSpelled) {
  for (const char* prefix : {"/a/b/model-1", "/a/./b//model-1", "/a/c/../b/model-1", "file:///a/b/model-1"}) {
    EXPECT_TRUE(lies_in(prefix, "/a/b")) << prefix;
    EXPECT_TRUE(lies_in(prefix, "/a/b/")) << prefix;
  }
  for (const char* prefix : {"/a/b/c/model-1", "/a/model-1", "/a/bb/model-1", "/a/b", "model-1"}) {
    EXPECT_FALSE(lies_in(prefix, "/a/b")) << prefix;
  }
}

}  // namespace
}  // namespace longhaul

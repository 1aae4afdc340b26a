#include "longhaul/cluster/shards/shard_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ShardFileTest : public ::testing::Test {
 protected:
  std::string prefix() const { return directory_.file("m-1"); }
  std::vector<std::string> names() const { return FileSystem::real().list(directory_.path()); }
  BundleWriterOptions elsewhere() const { return {.num_shards = 2, .data_elsewhere = true}; }

  testing::TemporaryDirectory directory_;
  testing::FaultyFileSystem files_, task_files_;
  const Tensor small_ = Tensor::of<float>({1, 2}), large_{kFloat, Shape{5'000'000}};
  const Tensor words_ = Tensor::of<std::string>({"a", "bc"});
};

// Two tasks write a data file each.
void write_two(FileSystem& files, FileSystem& task_files, const std::string& prefix, const BundleWriterOptions& options,
               const std::vector<Tensor>& values) {
  BundleWriter writer(files, prefix, options);
  for (int shard = 0; shard < 2; ++shard) {
    const auto written = write_shard_file(task_files, {.path = writer.temporary_data(shard)}, values);
    writer.use_shard(shard);
    for (int i = 0; i < written.entry_size(); ++i)
      writer.adopt(std::string(shard == 0 ? "a" : "b") + std::to_string(i), written.entry(i));
    writer.adopt_file(written.size_bytes());
  }
  writer.finish();
}

TEST_F(ShardFileTest, WhatTasksWriteIsWhatOneProcessWouldWrite) {
  const std::vector<Tensor> values{small_, large_, words_};
  write_two(files_, task_files_, prefix(), elsewhere(), values);
  EXPECT_THAT(names(), ElementsAre("m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.index"));
  const std::string alone = directory_.file("alone");
  BundleWriter writer(files_, alone, 2);
  for (int shard = 0; shard < 2; ++shard) {
    writer.use_shard(shard);
    for (size_t i = 0; i < values.size(); ++i)
      writer.add(std::string(shard == 0 ? "a" : "b") + std::to_string(i), values[i]);
  }
  writer.finish();
  for (const char* part : {".index", ".data-00000-of-00002", ".data-00001-of-00002"})
    EXPECT_TRUE(read_file(files_, prefix() + part) == read_file(files_, alone + part)) << part;
}

TEST_F(ShardFileTest, OnlyTemporaryNamesOfDataFilesAreWritten) {
  for (const char* name : {"m-1.data-00000-of-00001", "m-1.index.tempstate1.1", "notes", "chief.owner"}) {
    EXPECT_THAT(refusal_of([&] { write_shard_file(files_, {.path = directory_.file(name)}, {small_}); }),
                HasSubstr("not the temporary name of a data file"));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(ShardFileTest, AFailureAtAnyOperationLeavesNoFile) {
  const std::string path = temporary_path(data_path(prefix(), 0, 1));
  write_shard_file(files_, {.path = path}, {small_, words_});
  const int operations = static_cast<int>(files_.operations().size());
  files_.remove(path);
  for (int n = 0; n < operations; ++n) {
    files_.fail_operation(n);
    EXPECT_THROW(write_shard_file(files_, {.path = path}, {small_, words_}), UnavailableError) << n;
    files_.heal();
    EXPECT_THAT(names(), IsEmpty()) << n;
  }
}

TEST_F(ShardFileTest, AFileThatIsNoLongerWantedIsRemoved) {
  int asked = 0;
  const auto is_wanted = [&] {
    if (++asked == 3) throw AbortedError("the snapshot is over");
  };
  const std::string path = temporary_path(data_path(prefix(), 0, 1));
  EXPECT_THROW(write_shard_file(files_, {.path = path, .before_piece = is_wanted}, {large_}), AbortedError);
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(ShardFileTest, ADataFileThatIsNotHereOrOfAnotherSizeIsNotNamed) {
  for (const bool is_there : {true, false}) {
    BundleWriter writer(files_, prefix(), {.num_shards = 1, .data_elsewhere = true});
    const auto written = write_shard_file(files_, {.path = writer.temporary_data(0)}, {small_});
    writer.adopt("v", written.entry(0));
    writer.adopt_file(written.size_bytes() + (is_there ? 1 : 0));
    if (!is_there) files_.remove(writer.temporary_data(0));
    EXPECT_THAT(error_of<UnavailableError>([&] { writer.finish(); }), HasSubstr("written by another task"));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(ShardFileTest, WhatComesAfterItsSaveWasGivenUpIsRemovedByTheNext) {
  std::string late;
  {
    BundleWriter given_up(files_, prefix(), {.num_shards = 1, .data_elsewhere = true});
    late = given_up.temporary_data(0);
  }
  write_shard_file(task_files_, {.path = late}, {small_});
  write_two(files_, task_files_, directory_.file("other-2"), elsewhere(), {small_});
  EXPECT_FALSE(files_.exists(late));
  EXPECT_THAT(BundleReader(files_, directory_.file("other-2")).verify(), IsEmpty());
}

TEST_F(ShardFileTest, AFileIsSeenWithItsSizeAndChecksum) {
  const std::string contents(3'000'001, 'x');
  write_file_atomically(files_, directory_.file("f"), contents);
  const auto seen = look_at_file(files_, directory_.file("f"), {});
  EXPECT_TRUE(seen.is_there());
  EXPECT_EQ(seen.size_bytes(), contents.size());
  EXPECT_EQ(seen.crc32c(), extend_crc32c(0, contents));
  const auto none = look_at_file(files_, directory_.file("none"), {});
  EXPECT_FALSE(none.is_there());
  EXPECT_THAT(none.why(), HasSubstr("none"));
  EXPECT_FALSE(look_at_file(files_, directory_.path(), {}).is_there());
}

TEST_F(ShardFileTest, ADirectoryIsWritableIfAFileCanBeMadeBesideTheProbe) {
  const std::string probe = directory_.file(std::string(kDirectoryProbe) + "1");
  EXPECT_EQ(why_read_only(files_, probe), "");
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty()) << "what it makes is removed";
  EXPECT_THAT(why_read_only(files_, directory_.file("none/") + std::string(kDirectoryProbe) + "1"),
              HasSubstr("create"));
  EXPECT_THAT(why_read_only(files_, directory_.file("model-1.index")), HasSubstr("is not the name of a probe"));
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
}

TEST_F(ShardFileTest, OnlyAShortFileIsLookedAt) {
  const std::string path = directory_.file("long");
  write_file_atomically(files_, path, "");
  std::filesystem::resize_file(path, kMostLookedAt);
  EXPECT_EQ(look_at_file(files_, path, {}).size_bytes(), kMostLookedAt);
  std::filesystem::resize_file(path, 4 * kMostLookedAt);
  int pieces = 0;
  const auto seen = look_at_file(files_, path, [&] { ++pieces; });
  EXPECT_FALSE(seen.is_there());
  EXPECT_EQ(seen.size_bytes(), 0u);
  EXPECT_THAT(seen.why(), AllOf(HasSubstr(path), HasSubstr("more than 67108864 bytes")));
  EXPECT_LE(pieces, 66);
}

}  // namespace
}  // namespace longhaul

// Checkpoints in several data files.
#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using testing::FaultyFileSystem;
using ::testing::IsEmpty;
using testing::TemporaryDirectory;

void save(FileSystem& files, const std::string& prefix, int num_shards, float value) {
  BundleWriter writer(files, prefix, num_shards);
  for (int i = num_shards - 1; i >= 0; --i) {
    writer.use_shard(i);
    writer.add(std::string(1, static_cast<char>('a' + i)), Tensor::scalar(value + static_cast<float>(i)));
    const TensorSlice slice{{{i, 1}}};
    writer.add_slice("sliced", {num_shards}, slice, Tensor::of<float>({value}));
  }
  writer.finish();
}

TEST(BundleShards, EachHasItsTensorsAndTheIndexHasAll) {  // CB-1, unlike CB-4
  const TemporaryDirectory directory;
  save(FileSystem::real(), directory.file("m"), 3, 1);
  EXPECT_THAT(FileSystem::real().list(directory.path()),
              ElementsAre("m.data-00000-of-00003", "m.data-00001-of-00003", "m.data-00002-of-00003", "m.index"));
  const BundleReader reader(FileSystem::real(), directory.file("m"));
  EXPECT_EQ(reader.num_shards(), 3);
  EXPECT_EQ(reader.read("a").item<float>(), 1);
  EXPECT_EQ(reader.read("c").item<float>(), 3);
  EXPECT_TRUE(identical(reader.read("sliced"), Tensor::of<float>({1, 1, 1})));
  EXPECT_THAT(reader.verify(), IsEmpty());
}

TEST(BundleShards, ANumberOutOfRangeIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_THROW(BundleWriter(FileSystem::real(), directory.file("m"), 0), InvalidArgumentError);
  BundleWriter writer(FileSystem::real(), directory.file("m"), 2);
  EXPECT_THROW(writer.use_shard(2), InvalidArgumentError);
  EXPECT_THROW(writer.use_shard(-1), InvalidArgumentError);
}

// The one before has another number of data files.
TEST(BundleShards, AnErrorAtAnyOperationLeavesTheOldOrTheNewAndNoDebris) {  // CB-5, unlike CB-4
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  for (int n = 0;; ++n) {
    const TemporaryDirectory directory;
    const std::string prefix = directory.file("m");
    save(FileSystem::real(), prefix, 2, 1);
    const auto old_files = FileSystem::real().list(directory.path());
    FaultyFileSystem files;
    files.fail_operation(n);
    bool failed = false;
    try {
      save(files, prefix, 3, 5);
    } catch (const Error&) {
      failed = true;
    }
    const BundleReader reader(FileSystem::real(), prefix);
    EXPECT_THAT(reader.verify(), IsEmpty()) << n;
    if (reader.num_shards() == 2) {
      EXPECT_TRUE(failed);
      EXPECT_EQ(FileSystem::real().list(directory.path()), old_files) << n;
    }
    if (static_cast<int>(files.operations().size()) <= n) break;
  }
  set_log_sink(before);
}

TEST(BundleShards, AFullDiskLeavesNothing) {
  for (uint64_t bytes = 0; bytes < 100; bytes += 3) {
    const TemporaryDirectory directory;
    FaultyFileSystem files;
    files.fail_writes_after(bytes);
    EXPECT_THROW(save(files, directory.file("m"), 3, 1), ResourceExhaustedError) << bytes;
    EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty()) << bytes;
  }
}

// A variable of 2^31 elements, of which only a few bytes are saved here: sizes and places are 64-bit numbers.
TEST(BundleShards, ASliceOfAHugeTensorIsFoundAgain) {  // SA-28
  const TemporaryDirectory directory;
  const int64_t size = int64_t{1} << 33;
  BundleWriter writer(FileSystem::real(), directory.file("m"));
  const TensorSlice last{{{size - 3, 3}}};
  writer.add_slice("huge", {size}, last, Tensor::of<bool>(Shape{3}, {true, false, true}));
  writer.finish();
  const BundleReader reader(FileSystem::real(), directory.file("m"));
  EXPECT_EQ(reader.entry("huge").shape, Shape({size}));
  EXPECT_TRUE(identical(reader.read_slice("huge", {{{size - 1, 1}}}), Tensor::of<bool>(Shape{1}, {true})));
}

}  // namespace
}  // namespace longhaul

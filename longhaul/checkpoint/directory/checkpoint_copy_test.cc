#include "longhaul/checkpoint/directory/checkpoint_copy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/files/bucket_files.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointCopy : public ::testing::Test {
 protected:
  CheckpointCopy() { options_.to_files = &files_; }

  std::string save(float value, int shards = 2) {
    const std::string prefix = from_.file("m-1");
    BundleWriter writer(unsynced_, prefix, shards);
    writer.add("v", Tensor::scalar(value));
    writer.add("table", Tensor::of(Shape({3000}), std::vector<float>(3000, value)));
    writer.finish_data();
    write_file_atomically(unsynced_, prefix + ".meta", "meta");
    writer.commit();
    return prefix;
  }
  void flip_a_byte(const std::string& path) {
    std::string bytes = read_file(FileSystem::real(), path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file_atomically(FileSystem::real(), path, bytes);
  }
  bool copy() { return copy_checkpoint(from_.file("m-1"), to_.file("m-1"), options_); }
  // nullopt: there is no copy. What is there is whole, or this throws.
  std::optional<float> copied() {
    if (!checkpoint_exists(FileSystem::real(), to_.file("m-1"))) return std::nullopt;
    const BundleReader reader(FileSystem::real(), to_.file("m-1"));
    EXPECT_THAT(reader.verify(), IsEmpty());
    return reader.read("v").item<float>();
  }
  // All of a copy is written then. `since`: so many operations were before it.
  bool has_synced_incoming(size_t since) {
    const std::vector<std::string> operations = files_.operations();
    return std::find(operations.begin() + static_cast<ptrdiff_t>(since), operations.end(),
                     "sync_directory " + to_.file(kIncoming)) != operations.end();
  }
  std::vector<std::string> names() {
    std::vector<std::string> names = FileSystem::real().list(to_.path());
    std::erase(names, kIncoming);
    return names;
  }

  BucketFiles unsynced_{FileSystem::real(), {.syncs = false}};  // no machine crashes here, and the tests are faster
  testing::FaultyFileSystem files_{unsynced_};
  testing::TemporaryDirectory from_, to_;
  CheckpointCopyOptions options_;
};

TEST_F(CheckpointCopy, HasTheSameBytesUnderTheSameNames) {
  const std::string from = save(1);
  EXPECT_TRUE(copy());
  EXPECT_THAT(names(), ElementsAre("m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-1.index", "m-1.meta"));
  for (const std::string& name : names()) {
    EXPECT_EQ(read_file(files_, to_.file(name)), read_file(files_, from_.file(name))) << name;
  }
  EXPECT_THAT(files_.list(to_.file(kIncoming)), IsEmpty());
}

TEST_F(CheckpointCopy, TheIndexComesLastAfterAllIsSynced) {
  save(1, 1);
  copy();
  std::vector<std::string> order;
  for (const std::string& operation : files_.operations()) {
    const bool says_when = operation.starts_with("sync") || operation.starts_with("rename");
    if (says_when) order.push_back(operation);
  }
  const std::string data = "m-1.data-00000-of-00001", there = "sync_directory " + to_.path();
  EXPECT_THAT(order, ElementsAre("sync " + data, "sync m-1.meta", "sync m-1.index", there + "/.incoming", there,
                                 "rename " + data + " " + data, "rename m-1.meta m-1.meta", there,
                                 "rename m-1.index m-1.index", there));
}

TEST_F(CheckpointCopy, WhatIsThereAlreadyIsNotWrittenAgain) {
  save(1);
  copy();
  const size_t before = files_.operations().size();
  EXPECT_FALSE(copy());
  EXPECT_EQ(files_.operations().size(), before);
}

TEST_F(CheckpointCopy, AnotherOneOfThatNameIsReplacedWithItsShards) {
  save(1, 3);
  copy();
  remove_checkpoint(files_, from_.file("m-1"));
  save(2, 1);
  EXPECT_TRUE(copy());
  EXPECT_EQ(copied(), 2);
  EXPECT_THAT(names(), ElementsAre("m-1.data-00000-of-00001", "m-1.index", "m-1.meta"));
}

TEST_F(CheckpointCopy, DamageIsNotCopied) {
  const std::string from = save(1, 1);
  flip_a_byte(data_path(from, 0, 1));
  EXPECT_THROW(copy(), DataLossError);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(files_.list(to_.file(kIncoming)), IsEmpty());
}

TEST_F(CheckpointCopy, OneThatIsGoneIsNotFound) {
  EXPECT_THROW(copy(), NotFoundError);
}

TEST_F(CheckpointCopy, OneThatIsDeletedWhileItIsCopiedIsCopiedWhole) {
  const std::string from = save(1);
  options_.before_first_byte = [&](uint64_t) { remove_checkpoint(FileSystem::real(), from); };
  EXPECT_TRUE(copy());
  EXPECT_EQ(copied(), 1);
}

TEST_F(CheckpointCopy, AFailureOfAnyOperationLeavesTheOldOneOrTheNewOneOrNone) {
  const auto replace_the_old_one = [&] {
    std::filesystem::remove_all(to_.path());
    std::filesystem::create_directory(to_.path());
    save(1);
    copy();
    remove_checkpoint(FileSystem::real(), from_.file("m-1"));
    save(2);
  };
  replace_the_old_one();
  const size_t before = files_.operations().size();
  copy();
  const int operations = static_cast<int>(files_.operations().size() - before);
  for (const auto fault : {testing::FaultyFileSystem::Fault::kOnce, testing::FaultyFileSystem::Fault::kForGood}) {
    for (int n = 0; n < operations; ++n) {
      replace_the_old_one();
      files_.fail_operation(n, fault);
      try {
        copy();
      } catch (const Error&) {
      }
      files_.heal();
      const std::optional<float> there = copied();
      EXPECT_TRUE(there == std::nullopt || *there == 1 || *there == 2) << n;
      copy();
      EXPECT_EQ(copied(), 2) << n;
    }
  }
}

TEST_F(CheckpointCopy, AFullDiskLeavesNothing) {
  save(1);
  files_.fail_writes_after(1000);
  EXPECT_THROW(copy(), ResourceExhaustedError);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(files_.list(to_.file(kIncoming)), IsEmpty());
}

TEST_F(CheckpointCopy, WhoIsAskedBeforeAPieceCanEndIt) {
  save(1);
  options_.before_piece = [] { throw CancelledError("enough"); };
  EXPECT_THROW(copy(), CancelledError);
  EXPECT_THAT(names(), IsEmpty());
  for (const std::string& operation : files_.operations()) EXPECT_FALSE(operation.starts_with("append")) << operation;
}

// Numbers and strings are read in different ways.
TEST_F(CheckpointCopy, WhoIsAskedBeforeAPieceCanEndTheReadingBackToo) {
  constexpr int kMost = 100;
  const std::string prefix = from_.file("m-1");
  BundleWriter writer(unsynced_, prefix);
  writer.add("names", Tensor::of<std::string>({"a", "b"}));
  writer.add("numbers", Tensor::of<float>({1, 2, 3}));
  writer.finish();
  bool is_copied = false;
  int ended = 0;
  for (; !is_copied && ended < kMost; ended += !is_copied) {
    const size_t before = files_.operations().size();
    int pieces = 0;
    options_.before_piece = [&] {
      if (has_synced_incoming(before) && pieces++ == ended) throw CancelledError("enough");
    };
    try {
      is_copied = copy();
    } catch (const CancelledError&) {
      EXPECT_THAT(names(), IsEmpty()) << ended;
    }
  }
  EXPECT_TRUE(is_copied);
  EXPECT_GE(ended, 3) << "the index, the numbers and the strings";
}

TEST_F(CheckpointCopy, IsReadBackNoFasterThanItIsWritten) {
  testing::FakeClock clock(testing::FakeClock::Waits::kPassTime);
  save(1, 1);
  options_.clock = &clock;
  options_.max_bytes_per_second = 1000;
  const Seconds start = clock.now();
  EXPECT_TRUE(copy());
  EXPECT_GE(clock.now() - start, Seconds{24}) << "12000 bytes are written and read";
  EXPECT_LT(clock.now() - start, Seconds{27});
}

TEST_F(CheckpointCopy, WhoIsAskedBeforeAChangeKeepsItFromRenamingAndRemoving) {
  save(1);
  size_t before = 0;
  options_.before_change = [&] {
    if (before == 0) before = files_.operations().size();
    throw FailedPreconditionError("another's");
  };
  EXPECT_THROW(copy(), FailedPreconditionError);
  EXPECT_EQ(files_.operations().size(), before) << "not even what is left over is removed";
}

TEST_F(CheckpointCopy, InPlaceTheIndexIsWrittenLastAndNothingIsRenamed) {
  save(1, 1);
  BucketFiles bucket(files_, {.renames = false, .syncs = false});
  options_.to_files = &bucket;
  options_.in_place = true;
  EXPECT_TRUE(copy());
  EXPECT_EQ(copied(), 1);
  std::vector<std::string> created;
  for (const std::string& operation : files_.operations()) {
    EXPECT_THAT(operation, ::testing::Not(::testing::AnyOf(HasSubstr("rename"), HasSubstr("sync"))));
    if (operation.starts_with("create")) created.push_back(operation);
  }
  EXPECT_THAT(created,
              ElementsAre("create m-1.index", "create m-1.data-00000-of-00001", "create m-1.meta", "create m-1.index"))
      << "the first of them announces the others, in the folder for what comes";
}

TEST_F(CheckpointCopy, InPlaceADamagedOneIsRemovedAgain) {
  const std::string from = save(1, 1);
  flip_a_byte(data_path(from, 0, 1));
  options_.in_place = true;
  EXPECT_THROW(copy(), DataLossError);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointCopy, WhatAKilledProcessLeftIsRemoved) {
  std::filesystem::create_directory(to_.file(kIncoming));
  write_file_atomically(files_, to_.file(kIncoming) + std::string("/m-1.meta"), "half");
  EXPECT_THAT(clear_incoming(files_, to_.path()), IsEmpty());
  EXPECT_THAT(files_.list(to_.file(kIncoming)), IsEmpty());
}

TEST_F(CheckpointCopy, AFolderAmongCopiesUnderWayStaysAndStopsNoCopy) {
  const std::string theirs = to_.file(kIncoming) + std::string("/theirs");
  std::filesystem::create_directories(theirs);
  write_file_atomically(files_, theirs + "/notes", "precious");
  save(1);
  for (const bool in_place : {false, true}) {
    options_.in_place = in_place;
    remove_checkpoint(files_, to_.file("m-1"));
    EXPECT_TRUE(copy());
    EXPECT_EQ(copied(), 1);
    EXPECT_THAT(files_.list(to_.file(kIncoming)), ElementsAre("theirs"));
  }
  EXPECT_THAT(clear_incoming(files_, to_.path()), ElementsAre(theirs));
  EXPECT_EQ(read_file(files_, theirs + "/notes"), "precious");
}

}  // namespace
}  // namespace longhaul

#include "longhaul/checkpoint/bundle/bundle_merge.h"

#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class BundleMerge : public ::testing::Test {
 protected:
  BundleMerge() : old_sink_(set_log_sink([](LogLevel, const std::string&) {})) {}
  ~BundleMerge() override { set_log_sink(old_sink_); }

  // Two parts: each has a tensor of its own and a slice of one that they share.
  void write_parts() {
    for (int i = 0; i < 2; ++i) {
      BundleWriter writer(FileSystem::real(), parts[static_cast<size_t>(i)]);
      writer.add(i == 0 ? "x" : "a", Tensor::scalar(i));
      writer.add_slice("both", {2}, {{{i, 1}}}, Tensor::of<float>({static_cast<float>(i)}));
      writer.finish();
    }
  }
  void write_header(const std::string& part, const proto::BundleHeaderProto& header) {
    const auto file = files.create(index_path(part));
    TableWriter table(*file);
    table.add("", header.SerializeAsString());
    table.finish();
    file->close();
  }
  // The merge into an old checkpoint, with a failure at each operation in turn.
  void fail_everywhere(int old_shards);
  int merged_value() { return BundleReader(FileSystem::real(), prefix).read("a").item<int>(); }

  testing::TemporaryDirectory directory;
  testing::FaultyFileSystem files;
  std::string prefix = directory.file("m");
  std::vector<std::string> parts = {directory.file("m_temp/part-00000-of-00002"),
                                    directory.file("m_temp/part-00001-of-00002")};
  LogSink old_sink_;
};

TEST_F(BundleMerge, PartsBecomeTheShardsOfOneCheckpoint) {  // CB-4, CB-5, SA-62
  write_parts();
  merge_bundles(files, parts, prefix, true);
  EXPECT_THAT(files.list(directory.path()), ElementsAre("m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"));
  const BundleReader reader(files, prefix);
  EXPECT_THAT(reader.keys(), ElementsAre("a", "both", "x"));
  EXPECT_EQ(reader.read("a").item<int>(), 1);
  EXPECT_TRUE(identical(reader.read("both"), Tensor::of<float>({0, 1})));
  EXPECT_THAT(reader.verify(), IsEmpty());
}

TEST_F(BundleMerge, WhatDoesNotGoTogetherIsRefusedAndStays) {  // CB-4
  write_parts();
  EXPECT_THAT([&] { merge_bundles(files, {parts[0], parts[0]}, prefix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Duplicate tensor keyed by")));
  proto::BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(2);
  write_header(parts[1], header);
  EXPECT_THAT([&] { merge_bundles(files, parts, prefix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Merging bundles with different format versions")));
  header.mutable_version()->set_producer(1);
  header.set_endianness(proto::BundleHeaderProto::BIG);
  write_header(parts[1], header);
  EXPECT_THAT([&] { merge_bundles(files, parts, prefix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Merging bundles with conflicting endianness")));
  EXPECT_THROW(merge_bundles(files, {}, prefix), InvalidArgumentError);
  EXPECT_THROW(merge_bundles(files, {directory.file("none")}, prefix), NotFoundError);
  EXPECT_TRUE(checkpoint_exists(files, parts[0]));
}

TEST_F(BundleMerge, APartIsNotMergedIntoItsOwnName) {
  write_parts();
  const std::string other_spelling = directory.file("m_temp/./part-00001-of-00002");
  EXPECT_THAT([&] { merge_bundles(files, parts, other_spelling, true); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("cannot be merged into itself")));
  for (const std::string& part : parts) EXPECT_TRUE(checkpoint_exists(files, part)) << part;
}

void BundleMerge::fail_everywhere(int old_shards) {
  for (int n = 0;; ++n) {
    remove_checkpoint(FileSystem::real(), prefix);
    write_parts();
    BundleWriter old(FileSystem::real(), prefix, old_shards);
    old.add("a", Tensor::scalar(7));
    old.finish();
    const size_t before = files.operations().size();
    files.fail_operation(n);
    bool failed = false;
    try {
      merge_bundles(files, parts, prefix, true);
    } catch (const Error&) {
      failed = true;
    }
    files.heal();
    EXPECT_THAT(BundleReader(files, prefix).verify(), IsEmpty()) << n;
    const bool is_old = merged_value() == 7;
    EXPECT_TRUE(failed || !is_old) << n;
    EXPECT_TRUE(!is_old || (checkpoint_exists(files, parts[0]) && checkpoint_exists(files, parts[1]))) << n;
    if (!failed && files.operations().size() - before <= static_cast<size_t>(n)) break;
  }
}

TEST_F(BundleMerge, AnErrorAtAnyOperationLeavesTheOldAndThePartsOrTheNew) {
  fail_everywhere(3);
}

TEST_F(BundleMerge, AnErrorLeavesAnOldOneWithTheSameNamesOfDataFiles) {
  fail_everywhere(2);
}

}  // namespace
}  // namespace longhaul

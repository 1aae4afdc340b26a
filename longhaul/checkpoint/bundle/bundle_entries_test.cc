// Indexes that claim more than they are worth: refused as damaged, before memory is taken, and never by std::bad_alloc.
#include "longhaul/checkpoint/bundle/bundle_entries.h"

#include <gmock/gmock.h>
#include <snappy.h>

#include "longhaul/base/clock.h"
#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using Entry = proto::BundleEntryProto;

class HostileIndex : public ::testing::Test {
 protected:
  static constexpr int kFewSlices = 900;

  void write_index(const std::map<std::string, std::string>& entries) {
    const auto file = files_.create(index_path(prefix_));
    TableWriter table(*file);
    proto::BundleHeaderProto header;
    header.set_num_shards(1);
    table.add("", header.SerializeAsString());
    for (const auto& [key, value] : entries) table.add(key, value);
    table.finish();
    file->close();
  }

  // What opening it, and merging it, says.
  std::string refusal() {
    std::string message;
    try {
      merge_bundles(files_, {prefix_}, directory_.file("y"));
      ADD_FAILURE() << "it was merged";
    } catch (const DataLossError& error) {
      message = error.what();
    }
    try {
      BundleReader(files_, prefix_);
    } catch (const DataLossError& error) {
      EXPECT_EQ(message, error.what());
      return message;
    }
    return "it was taken";
  }

  // Opens it in a process of its own.
  void expect_growth_below(uint64_t bytes) {
    const auto growth = testing::memory_growth([&] { BundleReader(files_, prefix_); });
    if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
    EXPECT_LT(*growth, bytes);
  }

  HostileIndex() { write_file_atomically(files_, data_path(prefix_, 0, 1), "a"); }

  FileSystem& files_ = FileSystem::real();
  const testing::TemporaryDirectory directory_;
  const std::string prefix_ = directory_.file("x");
};

TEST_F(HostileIndex, MillionsOfDimensionsAreRefused) {
  Entry entry;
  entry.set_dtype(proto::DT_FLOAT);
  for (int i = 0; i < 2 * 1000 * 1000; ++i) entry.mutable_shape()->add_dim();
  write_index({{"w", entry.SerializeAsString()}});
  EXPECT_THAT(refusal(),
              HasSubstr("x.index: the entry of w: it claims 2000000 dimensions, but at most 254 are possible"));
  expect_growth_below(32u << 20);
}

TEST_F(HostileIndex, ASliceOfMillionsOfDimensionsIsRefused) {
  Entry entry;
  entry.set_dtype(proto::DT_FLOAT);
  proto::TensorSliceProto* slice = entry.add_slices();
  for (int i = 0; i < 2 * 1000 * 1000; ++i) slice->add_extent();
  write_index({{"w", entry.SerializeAsString()}});
  EXPECT_THAT(refusal(), HasSubstr("it claims a slice of 2000000 dimensions"));
  expect_growth_below(32u << 20);
}

TEST_F(HostileIndex, MoreSlicesThanAreStoredAreRefused) {
  Entry entry;
  entry.set_dtype(proto::DT_FLOAT);
  for (int i = 0; i < 2 * 1000 * 1000; ++i) entry.add_slices();
  write_index({{"w", entry.SerializeAsString()}});
  EXPECT_THAT(refusal(), HasSubstr("tensors claim 2000000 slices, but 0 are stored"));
  expect_growth_below(32u << 20);
}

TEST_F(HostileIndex, AFewSlicesThatAreMissingDamageTheirTensorAlone) {
  Entry entry;
  entry.set_dtype(proto::DT_FLOAT);
  set_shape(*entry.mutable_shape(), {kFewSlices});
  for (int i = 0; i < kFewSlices; ++i) set_slice(*entry.add_slices(), {{{i, 1}}});
  write_index({{"w", entry.SerializeAsString()}});
  EXPECT_THAT(BundleReader(files_, prefix_).verify(), ::testing::ElementsAre(HasSubstr("it is not stored")));
}

// A block of Snappy grows twentyfold, and a field that no entry has takes 32 bytes for its two.
TEST_F(HostileIndex, MillionsOfUnknownFieldsInACompressedBlockAreRefused) {
  std::string fields;
  for (int i = 0; i < 5 * 1000 * 1000; ++i) fields += "\x78\x01";
  std::string block = testing::from_hex("00000608011a020801");
  block += {'\0', '\1'};
  append_varint(block, fields.size());
  block += "w" + fields;
  wire::append(block, uint32_t{0});
  wire::append(block, uint32_t{1});
  std::string compressed;
  snappy::Compress(block.data(), block.size(), &compressed);
  write_file_atomically(files_, index_path(prefix_), testing::table_with_block(compressed, 1));
  ASSERT_LT(compressed.size(), 1u << 20);
  EXPECT_THAT(refusal(), HasSubstr("bytes of memory, too much for an index of"));
  expect_growth_below(64u << 20);
}

TEST_F(HostileIndex, AHundredThousandVariablesAreFine) {
  std::map<std::string, std::string> entries;
  Entry entry;
  entry.set_dtype(proto::DT_FLOAT);
  set_shape(*entry.mutable_shape(), {3, 3, 64, 64});
  entry.set_size(3 * 3 * 64 * 64 * 4);
  entry.set_crc32c(0x12345678);
  for (int i = 0; i < 100 * 1000; ++i) {
    entry.set_offset(int64_t{i} * entry.size());
    entries[fmt::format("resnet/unit_{}/conv2d/kernel/Adam_1", i)] = entry.SerializeAsString();
  }
  write_index(entries);
  EXPECT_EQ(BundleReader(files_, prefix_).keys().size(), 100u * 1000);
}

// 40 thousand slices of a tensor: 800 million pairs.
TEST_F(HostileIndex, VerifyingManySlicesTakesAMoment) {
  constexpr int kSlices = 40 * 1000;
  std::map<std::string, std::string> entries;
  Entry whole, part;
  for (Entry* entry : {&whole, &part}) entry->set_dtype(proto::DT_UINT8);
  set_shape(*whole.mutable_shape(), {kSlices});
  set_shape(*part.mutable_shape(), {1});
  part.set_size(1);
  part.set_crc32c(0x8b2c2b9f);  // of another byte: all are damaged, none is compared with the others
  for (int i = 0; i < kSlices; ++i) {
    const TensorSlice slice{{{i, 1}}};
    set_slice(*whole.add_slices(), slice);
    entries[slice_key("w", slice)] = part.SerializeAsString();
  }
  entries["w"] = whole.SerializeAsString();
  write_index(entries);
  const double begin = Clock::real().now().count();
  EXPECT_EQ(BundleReader(files_, prefix_).verify().size(), static_cast<size_t>(kSlices));
  EXPECT_LT(Clock::real().now().count() - begin, 20) << "quadratic time would be minutes";
}

TEST_F(HostileIndex, VerifyingStringsKeepsNone) {
  constexpr int64_t kStrings = 4 * 1000 * 1000;
  BundleWriter writer(files_, prefix_);
  writer.add("s", Tensor(kString, {kStrings}));
  writer.finish();
  const BundleReader reader(files_, prefix_);
  EXPECT_THAT(reader.verify(), ::testing::ElementsAre());
  const auto growth = testing::memory_growth([&] { reader.verify(); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 8u << 20);
}

}  // namespace
}  // namespace longhaul

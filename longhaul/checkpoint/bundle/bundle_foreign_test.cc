// Bundles that our writer does not write: of a big-endian machine, in several data files, of other versions, of dtypes
// that we do not have. Their index is made here, entry by entry.
#include <gmock/gmock.h>

#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Entry = proto::BundleEntryProto;

class ForeignBundle : public ::testing::Test {
 protected:
  Entry entry(int dtype, const Shape& shape, const std::string& bytes) {
    Entry entry;
    entry.set_dtype(static_cast<proto::DataType>(dtype));
    set_shape(*entry.mutable_shape(), shape);
    entry.set_size(static_cast<int64_t>(bytes.size()));
    entry.set_crc32c(mask_crc32c(crc32c(bytes)));
    return entry;
  }

  void write_data(const std::string& bytes, int shard = 0) {
    write_file_atomically(files_, data_path(prefix_, shard, header_.num_shards()), bytes);
  }

  BundleReader reader(const std::map<std::string, Entry>& entries) {
    const auto file = files_.create(index_path(prefix_));
    TableWriter table(*file);
    table.add("", header_.SerializeAsString());
    for (const auto& [key, entry] : entries) table.add(key, entry.SerializeAsString());
    table.finish();
    file->close();
    return BundleReader(files_, prefix_);
  }

  std::string error_of_reading(const Entry& entry) {
    const BundleReader reader = this->reader({{"t", entry}});
    EXPECT_EQ(reader.verify().size(), 1u);
    try {
      reader.read("t");
    } catch (const DataLossError& error) {
      return error.what();
    }
    return "";
  }

  std::string version_error() {
    try {
      reader({});
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  }

  ForeignBundle() { header_.set_num_shards(1); }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  const std::string prefix_ = directory_.file("m");
  proto::BundleHeaderProto header_;
};

TEST_F(ForeignBundle, NumbersOfABigEndianMachineAreTurned) {  // CB-26
  header_.set_endianness(proto::BundleHeaderProto::BIG);
  const std::string bytes = testing::from_hex(
      "3f800000c0000000"  // floats 1, -2
      "0102"              // a half
      "000000000000012c"  // int64 300
      "3f80000040000000"  // complex 1+2i
      "0507");            // int8
  write_data(bytes);
  std::map<std::string, Entry> entries;
  const auto add = [&](const char* name, int dtype, const Shape& shape, size_t offset, size_t size) {
    entries[name] = entry(dtype, shape, bytes.substr(offset, size));
    entries[name].set_offset(static_cast<int64_t>(offset));
  };
  add("float", kFloat, {2}, 0, 8);
  add("half", kHalf, {}, 8, 2);
  add("int64", kInt64, {}, 10, 8);
  add("complex", kComplex64, {}, 18, 8);
  add("int8", kInt8, {2}, 26, 2);
  const BundleReader reader = this->reader(entries);
  EXPECT_TRUE(identical(reader.read("float"), Tensor::of<float>({1, -2})));
  EXPECT_EQ(reader.read("half").flat<Half>()[0].bits, 0x0102);
  EXPECT_EQ(reader.read("int64").item<int64_t>(), 300);
  EXPECT_EQ(reader.read("complex").item<std::complex<float>>(), std::complex<float>(1, 2));
  EXPECT_TRUE(identical(reader.read("int8"), Tensor::of<int8_t>({5, 7})));
  EXPECT_THAT(reader.verify(), ElementsAre());
}

// The checksum of the lengths runs over big-endian numbers and is stored as one.
TEST_F(ForeignBundle, StringsOfABigEndianMachineAreRead) {  // CB-26
  header_.set_endianness(proto::BundleHeaderProto::BIG);
  const std::string lengths = testing::from_hex("0000000100000002");
  const uint32_t checksum = __builtin_bswap32(mask_crc32c(crc32c(lengths)));
  const std::string stored_checksum(reinterpret_cast<const char*>(&checksum), 4);
  const std::string bytes = "\x01\x02" + stored_checksum + "abc";
  write_data(bytes);
  Entry strings = entry(kString, {2}, bytes);
  strings.set_crc32c(mask_crc32c(crc32c(lengths + stored_checksum + "abc")));
  EXPECT_TRUE(identical(reader({{"s", strings}}).read("s"), Tensor::of<std::string>({"a", "bc"})));
}

TEST_F(ForeignBundle, TensorsLieInAnyOfTheDataFiles) {  // CB-1
  header_.set_num_shards(3);
  write_data("ab", 0);
  write_data("xyz", 2);
  Entry second = entry(kUInt8, {2}, "yz");
  second.set_shard_id(2);
  second.set_offset(1);
  const BundleReader reader = this->reader({{"a", entry(kUInt8, {2}, "ab")}, {"b", second}});
  EXPECT_TRUE(identical(reader.read("a"), Tensor::of<uint8_t>({'a', 'b'})));
  EXPECT_TRUE(identical(reader.read("b"), Tensor::of<uint8_t>({'y', 'z'})));
}

TEST_F(ForeignBundle, VersionsThatWeAreTooOldForAreRefused) {  // CB-27
  header_.mutable_version()->set_producer(9);
  EXPECT_EQ(version_error(), "");
  header_.mutable_version()->set_min_consumer(2);
  EXPECT_THAT(version_error(), HasSubstr("Checkpoint min consumer version 2 above current version 1"));
  header_.mutable_version()->set_min_consumer(0);
  header_.mutable_version()->add_bad_consumers(1);
  EXPECT_THAT(version_error(), HasSubstr("disallows consumer version"));
  header_.mutable_version()->clear_bad_consumers();
  header_.mutable_version()->set_producer(-1);
  EXPECT_THAT(version_error(), HasSubstr("below min producer"));
}

TEST_F(ForeignBundle, UnknownDtypesAreListedAndVerifiedButNotRead) {  // unlike CB-25
  write_data("abcd");
  const BundleReader reader = this->reader({{"quantized", entry(11, {4}, "abcd")}, {"variant", entry(21, {}, "abcd")}});
  EXPECT_THAT(reader.keys(), ElementsAre("quantized", "variant"));
  EXPECT_EQ(reader.entry("quantized").dtype, 11);
  EXPECT_THAT(reader.verify(), ElementsAre());
  const auto refusal = [&](const char* name) -> std::string {
    try {
      reader.read(name);
    } catch (const UnimplementedError& error) {
      return error.what();
    }
    return "it was read";
  };
  EXPECT_THAT(refusal("quantized"), HasSubstr("tensor quantized: DT_QINT8 is not supported"));
  EXPECT_THAT(refusal("variant"), HasSubstr("tensor variant: DT_VARIANT is not supported"));
  EXPECT_EQ(stored_dtype_name(15), "DT_QINT16");
  EXPECT_EQ(stored_dtype_name(1234), "dtype 1234");
}

TEST_F(ForeignBundle, NoSizeIsBelieved) {  // CB-23, unlike CB-23
  write_data("abcdefgh");
  const auto changed = [&](auto change) {
    Entry changed = entry(kFloat, {2}, "abcdefgh");
    change(changed);
    return error_of_reading(changed);
  };
  EXPECT_THAT(changed([](Entry& e) { e.set_size(int64_t{1} << 50); }), HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(changed([](Entry& e) { e.mutable_shape()->mutable_dim(0)->set_size(int64_t{1} << 62); }),
              HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(changed([](Entry& e) {
                e.mutable_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
                e.set_size(int64_t{1} << 42);
              }),
              HasSubstr("but data file 0 has 8 bytes"));
  EXPECT_THAT(changed([](Entry& e) { e.mutable_shape()->mutable_dim(0)->set_size(-2); }),
              HasSubstr("impossible shape"));
  EXPECT_THAT(changed([](Entry& e) { e.mutable_shape()->set_unknown_rank(true); }), HasSubstr("impossible shape"));
  EXPECT_THAT(changed([](Entry& e) { e.set_offset(1); }), HasSubstr("but data file 0 has 8 bytes"));
  EXPECT_THAT(changed([](Entry& e) { e.set_offset(-1); }), HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(changed([](Entry& e) { e.set_offset(INT64_MAX); }), HasSubstr("but data file 0 has 8 bytes"));
  EXPECT_THAT(changed([](Entry& e) { e.set_shard_id(1); }),
              HasSubstr("it is in data file 1, but there are 1 data files"));
  EXPECT_THAT(changed([](Entry& e) { e.set_crc32c(1); }), HasSubstr("Checksum does not match: stored 0x"));
}

TEST_F(ForeignBundle, NoLengthOfAStringIsBelieved) {  // CB-24
  const auto error_for = [&](const std::string& bytes, const Shape& shape) {
    write_data(bytes);
    return error_of_reading(entry(kString, shape, bytes));
  };
  EXPECT_THAT(error_for(testing::from_hex("ffffffff7f00000000"), {}), HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(error_for(testing::from_hex("ffffffffffffffffff"), {}), HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(error_for(testing::from_hex("010000000061"), {}), HasSubstr("The length checksum does not match"));
  EXPECT_THAT(error_for("abc", {int64_t{1} << 40}), HasSubstr("Invalid size in bundle entry"));
  EXPECT_THAT(error_for("abc", {1}), HasSubstr("Invalid size in bundle entry"));
}

// A file of 4 GiB and more, of which the first MiB can be read.
class HugeFile : public ReadableFile {
 public:
  explicit HugeFile(std::string head) : head_(std::move(head)) {}
  uint64_t size() const override { return head_.size() + (uint64_t{1} << 32); }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    if (offset >= (uint64_t{1} << 20)) throw UnavailableError("so far and no further");
    for (size_t i = 0; i < count; ++i) out[i] = offset + i < head_.size() ? head_[offset + i] : '\0';
    return count;
  }

 private:
  const std::string head_;
};

TEST_F(ForeignBundle, ALengthBeyondFourGiBIsCheckedAsEightBytes) {  // CB-24
  const uint64_t length = uint64_t{1} << 32;
  const auto verify = [&](const std::string& counted) {
    std::string head;
    append_varint(head, length);
    wire::append(head, mask_crc32c(crc32c(counted)));
    verify_strings(HugeFile(head), 0, {head.size() + length, 0}, /*big_endian=*/false, "t", 1);
  };
  EXPECT_THROW(verify(testing::from_hex("0000000001000000")), UnavailableError) << "the length is right";
  EXPECT_THAT([&] { verify(testing::from_hex("00000000")); },
              ::testing::ThrowsMessage<DataLossError>(HasSubstr("The length checksum does not match")));
}

TEST_F(ForeignBundle, NoListOfSlicesIsBelieved) {
  write_data("abcdefgh");
  Entry whole = entry(kFloat, {int64_t{1} << 40}, "");
  set_slice(*whole.add_slices(), parse_shape_and_slice("2 0,2").second);
  const std::string key = slice_key("t", parse_shape_and_slice("2 0,2").second);
  const auto error_with = [&](const Entry& part, size_t damages = 1) {
    const BundleReader reader = this->reader({{"t", whole}, {key, part}});
    EXPECT_EQ(reader.verify().size(), damages);
    try {
      reader.read("t");
    } catch (const DataLossError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of_reading(whole), HasSubstr("it is not stored"));
  EXPECT_THAT(error_with(entry(kFloat, {2}, "abcdefgh")), HasSubstr("hold 2 of the 1099511627776 elements"));
  EXPECT_THAT(error_with(entry(kInt32, {2}, "abcdefgh")), HasSubstr("it is stored as DT_INT32"));
  Entry nested = entry(kFloat, {2}, "abcdefgh");
  set_slice(*nested.add_slices(), parse_shape_and_slice("2 0,2").second);
  EXPECT_THAT(error_with(nested, 2), HasSubstr("is itself stored in slices"))
      << "its size was not compared with its shape";
  whole.mutable_slices(0)->mutable_extent(0)->set_start(-1);
  EXPECT_THROW(reader({{"t", whole}}).read("t"), DataLossError);
}

TEST_F(ForeignBundle, AnIndexWithoutAHeaderIsDamaged) {
  const auto file = files_.create(index_path(prefix_));
  TableWriter table(*file);
  table.add("t", Entry().SerializeAsString());
  table.finish();
  file->close();
  EXPECT_THROW(BundleReader(files_, prefix_), DataLossError);
  header_.set_num_shards(0);
  EXPECT_THROW(reader({}), DataLossError);
}

}  // namespace
}  // namespace longhaul

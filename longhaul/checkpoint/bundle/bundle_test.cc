// BundleWriter and BundleReader against each other, and against the bytes that the format asks for.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/table/table.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BundleTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  std::string contents(const std::string& name) { return read_file(files_, path(name)); }
  BundleReader reader(const std::string& name = "m") { return BundleReader(files_, path(name)); }
  void save(const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& name = "m") {
    BundleWriter writer(files_, path(name));
    for (const auto& [key, tensor] : tensors) writer.add(key, tensor);
    writer.finish();
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

Tensor counting(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.size_bytes(); ++i)
    bytes[i] = static_cast<unsigned char>(dtype == kBool ? i % 2 : i * 7);
  return tensor;
}

TEST_F(BundleTest, EveryDtypeAndShapeComesBack) {  // CB-22, SA-47
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int number = 0; number < 64; ++number) {
    if (!is_known_dtype(number) || number == kString) continue;
    const auto dtype = static_cast<DType>(number);
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 5}}) {
      tensors.emplace_back(fmt::format("{}{}", dtype_name(dtype), shape.to_string()), counting(dtype, shape));
    }
  }
  tensors.emplace_back("strings", Tensor::of<std::string>({"", "one", std::string(70000, 'x'), std::string(1, '\0')}));
  tensors.emplace_back("no strings", Tensor(kString, {0}));
  tensors.emplace_back("many", Tensor::of<std::string>(std::vector<std::string>(100000, "abcdefgh")));
  save(tensors);
  const BundleReader reader = this->reader();
  EXPECT_EQ(reader.keys().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(reader.read(name), tensor)) << name;
  EXPECT_THAT(reader.verify(), ElementsAre());
}

TEST_F(BundleTest, TheFilesAreThoseThatTensorFlowWrites) {  // CB-1, CB-5, CB-10, CB-13, CB-15, CB-20, CB-21
  save({{"counter", Tensor::scalar(0.0f)}});
  EXPECT_EQ(contents("m.data-00000-of-00001"), testing::counter_bundle().data);
  EXPECT_EQ(contents("m.index"), testing::counter_bundle().index);
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("m.data-00000-of-00001", "m.index"));
  save({}, "empty");
  EXPECT_EQ(contents("empty.index"), testing::empty_bundle().index);
}

// Worked by hand after the format page: lengths 1 and 2, the masked CRC-32C of 01000000 02000000, and the letters.
TEST_F(BundleTest, StringsLieAsTheFormatSays) {  // CB-24
  save({{"s", Tensor::of<std::string>({"a", "bc"})}});
  const std::string data = contents("m.data-00000-of-00001");
  ASSERT_EQ(data.size(), 9u);
  EXPECT_EQ(data.substr(0, 2), "\x01\x02");
  EXPECT_EQ(data.substr(6), "abc");
}

// Both checksums worked by hand: e9e43685 is that of 01000000 02000000, bfdfdb7a and the letters, masked.
TEST_F(BundleTest, StringsHaveTheChecksumsOfTheFormat) {  // CB-24
  save({{"s", Tensor::of<std::string>({"a", "bc"})}});
  const std::string name = "m.data-00000-of-00001";
  const std::string data = contents(name);
  EXPECT_EQ(data, testing::from_hex("0102bfdfdb7a616263"));
  EXPECT_THAT(contents("m.index"), HasSubstr(testing::from_hex("280935e9e43685"))) << "size and checksum of the entry";
  const auto error_with_flipped = [&](size_t at) -> std::string {
    std::string damaged = data;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file_atomically(files_, path(name), damaged);
    try {
      reader().read("s");
    } catch (const DataLossError& error) {
      return error.what();
    }
    return "it was read";
  };
  EXPECT_THAT(error_with_flipped(2), HasSubstr("The length checksum does not match"));
  EXPECT_THAT(error_with_flipped(8), HasSubstr(" Checksum does not match"));
}

TEST_F(BundleTest, ReadsGenuineFiles) {  // CB-13
  testing::write_bundle(testing::snappy_bundle(), path("snappy"));
  const BundleReader snappy = reader("snappy");
  EXPECT_THAT(snappy.keys(), ElementsAre("a", "a2", "b", "c", "c2"));
  EXPECT_EQ(snappy.read("a").item<float>(), 0.5f);
  EXPECT_EQ(snappy.read("b").item<float>(), 2.0f);
  EXPECT_EQ(snappy.read("c").item<float>(), 3.0f);
  EXPECT_EQ(snappy.total_bytes(), 20u);
  EXPECT_THAT(snappy.verify(), ElementsAre());
  testing::write_bundle(testing::empty_bundle(), path("empty"));
  EXPECT_THAT(reader("empty").keys(), ElementsAre());
}

TEST_F(BundleTest, TheSameCallsGiveTheSameBytes) {
  const auto tensors = std::vector<std::pair<std::string, Tensor>>{
      {"z", counting(kFloat, {100, 300})}, {"a", Tensor::of<std::string>({"x", "y"})}, {"m", counting(kInt64, {7})}};
  save(tensors, "one");
  save(tensors, "two");
  EXPECT_EQ(contents("one.index"), contents("two.index"));
  EXPECT_EQ(contents("one.data-00000-of-00001"), contents("two.data-00000-of-00001"));
}

TEST_F(BundleTest, LargeTensorsStartAtMultiplesOf4096) {  // unlike CB-22
  save({{"small", counting(kFloat, {3})}, {"large", counting(kInt8, {64 * 1024})}, {"next", counting(kFloat, {1})}});
  const std::string data = contents("m.data-00000-of-00001");
  EXPECT_EQ(data.size(), 4096u + 64 * 1024 + 4);
  EXPECT_EQ(data.substr(12, 4096 - 12), std::string(4096 - 12, '\0'));
  EXPECT_TRUE(identical(reader().read("large"), counting(kInt8, {64 * 1024})));
}

TEST_F(BundleTest, EntriesSayWhatThereIs) {
  save({{"w", counting(kFloat, {2, 3})}});
  const BundleReader reader = this->reader();
  EXPECT_EQ(reader.entry("w").dtype, kFloat);
  EXPECT_EQ(reader.entry("w").shape, Shape({2, 3}));
  EXPECT_EQ(reader.entry("w").bytes, 24u);
  EXPECT_TRUE(reader.has("w"));
  EXPECT_FALSE(reader.has("b"));
  EXPECT_EQ(reader.find("b"), nullptr);
  try {
    reader.read("b");
    FAIL();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("b not found in checkpoint"));
  }
}

TEST_F(BundleTest, AFileUriNamesAPathToo) {  // CB-3
  BundleWriter(files_, "file://" + path("new/m")).finish();
  EXPECT_THAT(BundleReader(files_, "file://" + path("new/m")).keys(), ElementsAre());
  EXPECT_TRUE(checkpoint_exists(files_, path("new/m")));
}

TEST_F(BundleTest, ADuplicateKeySpoilsTheCheckpoint) {  // CB-28
  BundleWriter writer(files_, path("m"));
  writer.add("a", Tensor::scalar(1.0f));
  try {
    writer.add("a", Tensor::scalar(2.0f));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("duplicate key"));
  }
  EXPECT_THROW(writer.finish(), FailedPreconditionError);
}

TEST_F(BundleTest, RefusesWhatCannotBeStored) {  // CB-28
  EXPECT_THROW(BundleWriter(files_, path("m")).add("", Tensor::scalar(1)), InvalidArgumentError);
  EXPECT_THROW(BundleWriter(files_, path("m")).add("a", Tensor()), InvalidArgumentError);
  BundleWriter writer(files_, path("m"));
  EXPECT_THROW(writer.commit(), FailedPreconditionError);
  writer.finish();
  EXPECT_THROW(writer.finish(), FailedPreconditionError);
}

TEST_F(BundleTest, AnAbandonedWriterLeavesNothing) {  // CB-2
  BundleWriter(files_, path("m")).add("a", Tensor::scalar(1.0f));
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre());
  auto writer = std::make_unique<BundleWriter>(files_, path("m"));
  writer->finish_data();
  writer.reset();
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre());
}

TEST_F(BundleTest, NamesWhatIsMissing) {  // CB-28
  try {
    reader("absent");
    FAIL();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no checkpoint"));
  }
  EXPECT_THROW(BundleReader(files_, directory_.path()), NotFoundError);
  save({{"a", Tensor::scalar(1.0f)}});
  files_.remove(path("m.data-00000-of-00001"));
  EXPECT_THROW(reader().read("a"), DataLossError) << "an older checkpoint may do";
  EXPECT_EQ(reader().verify().size(), 1u);
}

TEST_F(BundleTest, AV1CheckpointIsNamedAsSuch) {
  write_file_atomically(files_, path("v1"), testing::counter_bundle().index);  // a table in a file without an ending
  try {
    reader("v1");
    FAIL();
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("V1 checkpoint"));
  }
  write_file_atomically(files_, path("text"), "no checkpoint at all");
  EXPECT_THROW(reader("text"), NotFoundError);
}

class SliceTest : public BundleTest {
 protected:
  // A 4x6 matrix of 0, 1, ... in three slices: the upper left, the upper right, the lower half.
  template <typename T>
  void save_sliced(const std::vector<T>& values) {
    const Tensor whole = Tensor::of<T>(Shape{4, 6}, values);
    BundleWriter writer(files_, path("m"));
    writer.add("before", Tensor::scalar(1.0f));
    for (const char* text : {"4 6 0,2:0,3", "4 6 0,2:3,3", "4 6 2,2:-"}) {
      const TensorSlice slice = parse_shape_and_slice(text).second;
      writer.add_slice("p", {4, 6}, slice, part_of(whole, slice));
    }
    writer.finish();
  }

  template <typename T>
  static Tensor part(const Tensor& whole, const TensorSlice& slice) {
    std::vector<T> values;
    const TensorSlice box = slice.within(whole.shape());
    for (int64_t i = 0; i < box.extents[0].length; ++i) {
      for (int64_t j = 0; j < box.extents[1].length; ++j) {
        const int64_t at = (box.extents[0].start + i) * whole.shape().dim(1) + box.extents[1].start + j;
        values.push_back(whole.flat<T>()[static_cast<size_t>(at)]);
      }
    }
    return Tensor::of<T>(shape_of(box), values);
  }
  static Tensor part_of(const Tensor& whole, const TensorSlice& slice) {
    return whole.dtype() == kString ? part<std::string>(whole, slice) : part<float>(whole, slice);
  }
};

TEST_F(SliceTest, AnySliceIsPutTogetherFromThoseStored) {  // CB-30, CB-33
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>(i));
  const Tensor whole = Tensor::of<float>(Shape{4, 6}, values);
  save_sliced(values);
  save({{"p", whole}}, "unsliced");
  const BundleReader sliced = reader(), unsliced = reader("unsliced");
  EXPECT_THAT(sliced.keys(), ElementsAre("before", "p"));
  EXPECT_EQ(sliced.entry("p").slices.size(), 3u);
  EXPECT_EQ(sliced.entry("p").bytes, 96u);
  EXPECT_EQ(sliced.total_bytes(), 100u);
  EXPECT_TRUE(identical(sliced.read("p"), whole));
  for (const char* text : {"4 6 -:-", "4 6 0,4:0,6", "4 6 1,2:2,2", "4 6 0,2:0,3", "4 6 3,1:5,1", "4 6 0,4:2,1"}) {
    const TensorSlice slice = parse_shape_and_slice(text).second;
    EXPECT_TRUE(identical(sliced.read_slice("p", slice), part_of(whole, slice))) << text;
    EXPECT_TRUE(identical(unsliced.read_slice("p", slice), part_of(whole, slice))) << text;
  }
  EXPECT_THROW(sliced.read_slice("p", parse_shape_and_slice("9 9 8,1:-").second), InvalidArgumentError);
  EXPECT_THAT(sliced.verify(), ElementsAre());
}

// Opens no data file for now.
class BusyDataFiles : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    if (path.find(".data-") != path.npos) throw UnavailableError(path + ": busy");
    return FaultyFileSystem::open(path);
  }
};

TEST_F(SliceTest, AFileThatCannotBeOpenedForNowIsNoDamage) {
  BundleWriter writer(files_, path("m"));
  writer.add_slice("p", {2}, parse_shape_and_slice("2 0,2").second, Tensor::of<float>({1, 2}));
  writer.finish();
  BusyDataFiles busy;
  EXPECT_THROW(BundleReader(busy, path("m")).verify(), UnavailableError);
  EXPECT_THAT(reader().verify(), ElementsAre());
}

TEST_F(SliceTest, StringsComeInSlicesToo) {
  std::vector<std::string> values;
  for (int i = 0; i < 24; ++i) values.push_back(std::string(static_cast<size_t>(i), 's'));
  save_sliced(values);
  EXPECT_TRUE(identical(reader().read("p"), Tensor::of<std::string>(Shape{4, 6}, values)));
}

TEST_F(SliceTest, ASliceThatIsTheWholeIsAPlainTensor) {  // CB-33
  BundleWriter writer(files_, path("m"));
  writer.add_slice("p", {2, 2}, parse_shape_and_slice("2 2 0,2:-").second, counting(kFloat, {2, 2}));
  writer.finish();
  EXPECT_TRUE(reader().entry("p").slices.empty());
  EXPECT_TRUE(identical(reader().read("p"), counting(kFloat, {2, 2})));
}

TEST_F(SliceTest, TheWriterRefusesSlicesThatDoNotFit) {
  const auto add = [this](const char* text, const Tensor& tensor) {
    BundleWriter writer(files_, path("m"));
    writer.add("q", Tensor::scalar(1.0f));
    writer.add_slice("p", {4, 6}, parse_shape_and_slice("4 6 0,2:-").second, counting(kFloat, {2, 6}));
    const auto [shape, slice] = parse_shape_and_slice(text);
    writer.add_slice("p", shape, slice, tensor);
  };
  EXPECT_NO_THROW(add("4 6 2,2:-", counting(kFloat, {2, 6})));
  EXPECT_THROW(add("4 6 2,2:-", counting(kFloat, {6, 2})), InvalidArgumentError);
  EXPECT_THROW(add("4 6 1,2:-", counting(kFloat, {2, 6})), InvalidArgumentError);
  EXPECT_THROW(add("4 6 0,2:-", counting(kFloat, {2, 6})), InvalidArgumentError);
  EXPECT_THROW(add("4 6 2,2:-", counting(kInt32, {2, 6})), InvalidArgumentError);
  EXPECT_THROW(add("5 6 2,2:-", counting(kFloat, {2, 6})), InvalidArgumentError);
}

// In a process of its own, where nothing has been warned of yet.
TEST_F(SliceTest, ThatTensorFlowRefusesASliceIsSaidOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto save = [this](DType dtype) {
    BundleWriter writer(files_, path("m"));
    for (const char* text : {"4 0,2", "4 2,2"}) {
      writer.add_slice("p", {4}, parse_shape_and_slice(text).second, Tensor(dtype, {2}));
    }
    writer.finish();
  };
  const auto save_all_and_tell = [&] {
    std::vector<std::string> warnings;
    set_log_sink([&](LogLevel level, const std::string& message) {
      if (level == LogLevel::kWarning) warnings.push_back(message);
    });
    for (const DType dtype : {kFloat, kDouble, kInt32, kBFloat16}) save(dtype);
    if (!warnings.empty()) std::exit(1);
    for (const DType dtype : {kUInt16, kHalf, kUInt32, kUInt64}) save(dtype);
    for (const std::string& warning : warnings) std::fprintf(stderr, "%s", warning.c_str());
    std::exit(warnings.size() == 1 ? 0 : 2);
  };
  EXPECT_EXIT(save_all_and_tell(), ::testing::ExitedWithCode(0), "p is uint16 and is stored in slices.*TensorFlow");
}

TEST_F(SliceTest, AHoleIsReported) {
  BundleWriter writer(files_, path("m"));
  writer.add_slice("p", {4}, parse_shape_and_slice("4 0,2").second, counting(kFloat, {2}));
  writer.finish();
  const BundleReader reader = this->reader();
  EXPECT_THROW(reader.read("p"), DataLossError);
  EXPECT_TRUE(identical(reader.read_slice("p", parse_shape_and_slice("4 0,2").second), counting(kFloat, {2})));
  EXPECT_EQ(reader.verify().size(), 1u);
}

}  // namespace
}  // namespace longhaul

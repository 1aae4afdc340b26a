// Many tensors at once, small and large, whole and in slices; and what damage and disks that fail do to them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/bundle/tensor_assembly.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor noise(DType dtype, Shape shape) {
  static std::mt19937 random(3);
  Tensor tensor(dtype, std::move(shape));
  char* bytes = static_cast<char*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<char>(random() % 2);
  return tensor;
}

// The real file system, where a file's reads fail at one place.
class BadDisk : public FileSystem {
 public:
  explicit BadDisk(uint64_t bad) : bad_(bad) {}

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    return std::make_unique<File>(real().open(path), path, path.ends_with(".index") ? UINT64_MAX : bad_);
  }
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    return real().create(path, if_exists);
  }
  bool exists(const std::string& path) override { return real().exists(path); }
  bool is_directory(const std::string& path) override { return real().is_directory(path); }
  double modified_at(const std::string& path) override { return real().modified_at(path); }
  std::vector<std::string> list(const std::string& directory) override { return real().list(directory); }
  void make_directories(const std::string& path) override { real().make_directories(path); }
  void rename(const std::string& from, const std::string& to) override { real().rename(from, to); }
  void link(const std::string& from, const std::string& to) override { real().link(from, to); }
  void remove(const std::string& path) override { real().remove(path); }
  void sync_directory(const std::string& path) override { real().sync_directory(path); }
  uint64_t free_bytes(const std::string& path) override { return real().free_bytes(path); }

 private:
  class File : public ReadableFile {
   public:
    File(std::unique_ptr<ReadableFile> inner, std::string path, uint64_t bad)
        : inner_(std::move(inner)), path_(std::move(path)), bad_(bad) {}
    uint64_t size() const override { return inner_->size(); }
    size_t read(uint64_t offset, char* out, size_t count) const override {
      if (offset <= bad_ && bad_ < offset + count) throw_errno(EIO, "read " + path_);
      return inner_->read(offset, out, count);
    }

   private:
    const std::unique_ptr<ReadableFile> inner_;
    const std::string path_;
    const uint64_t bad_;
  };

  const uint64_t bad_;
};

// A checkpoint of tensors of all sizes, some megabytes of it, some in slices.
class ReadMany : public ::testing::Test {
 protected:
  ReadMany() {
    for (const int64_t size : {0, 1, 100, 16'384, 50'000, 400'001, 1'000'000}) {
      tensors_[fmt::format("float{}", size)] = noise(kFloat, {size});
      tensors_[fmt::format("bool{}", size)] = noise(kBool, {size});
    }
    tensors_["strings"] = Tensor::of<std::string>({"one", "", std::string(100'000, 'x')});
    tensors_["sliced"] = noise(kFloat, {300, 1000});
    tensors_["row"] = noise(kFloat, {1, 1000});
    BundleWriter writer(FileSystem::real(), prefix_);
    for (const auto& [name, tensor] : tensors_) {
      if (name != "sliced") writer.add(name, tensor);
    }
    for (const int64_t begin : {0, 100, 250}) {
      const int64_t rows = begin == 0 ? 100 : begin == 100 ? 150 : 50;
      writer.add_slice("sliced", {300, 1000}, rows_of(begin, rows), rows_of_sliced(begin, rows));
    }
    writer.finish();
  }

  static TensorSlice rows_of(int64_t begin, int64_t count) { return {{{begin, count}, {}}}; }
  Tensor rows_of_sliced(int64_t begin, int64_t count) const {
    const char* bytes = static_cast<const char*>(tensors_.at("sliced").data());
    return Tensor::wrap(kFloat, {count, 1000}, bytes + begin * 4000, tensors_.at("sliced").owner());
  }

  std::vector<BundleReader::Wanted> all() const {
    std::vector<BundleReader::Wanted> wanted;
    for (const auto& [name, tensor] : tensors_) wanted.push_back({.name = name});
    return wanted;
  }
  std::string data_file() const { return data_path(prefix_, 0, 1); }
  BundleReader reader() const { return BundleReader(FileSystem::real(), prefix_); }

  // A byte of the file that belongs to the tensor.
  uint64_t place_of(const std::string& name) const {
    const std::string file = read_file(FileSystem::real(), data_file());
    const Tensor& tensor = tensors_.at(name);
    const std::string_view bytes(static_cast<const char*>(tensor.data()), tensor.size_bytes());
    const auto begin = file.find(bytes.substr(0, 4096));
    return begin + tensor.size_bytes() / 2;
  }

  testing::TemporaryDirectory directory_;
  const std::string prefix_ = directory_.file("model.ckpt-1");
  std::map<std::string, Tensor> tensors_;
};

TEST_F(ReadMany, GivesWhatEachReadGives) {
  const auto wanted = all();
  const auto read = reader().read_many(wanted);
  ASSERT_EQ(read.size(), tensors_.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_TRUE(identical(read[i], tensors_.at(wanted[i].name))) << wanted[i].name;
    EXPECT_TRUE(identical(reader().read(wanted[i].name), read[i])) << wanted[i].name;
  }
  EXPECT_THAT(reader().verify(), IsEmpty());
}

TEST_F(ReadMany, SlicesAreThoseThatWereAskedFor) {
  const auto read = reader().read_many(std::vector<BundleReader::Wanted>{
      {"sliced", rows_of(100, 150)},  // as stored
      {"sliced", rows_of(90, 170)},   // of three
      {"row", TensorSlice{{{}, {10, 20}}}},
      {"float100", {}},
  });
  EXPECT_TRUE(identical(read[0], rows_of_sliced(100, 150)));
  EXPECT_TRUE(identical(read[1], rows_of_sliced(90, 170)));
  EXPECT_EQ(read[2].flat<float>()[19], tensors_["row"].flat<float>()[29]);
  EXPECT_TRUE(identical(read[3], tensors_["float100"]));
}

TEST_F(ReadMany, LargeTensorsLieAtPagesAndAreReadWhereTheCallerSays) {
  std::vector<const void*> made;
  const auto make = [&](DType dtype, const Shape& shape) {
    const Tensor tensor(dtype, shape);
    made.push_back(tensor.data());
    return tensor;
  };
  const auto read = reader().read_many(std::vector<BundleReader::Wanted>{{"float1000000", {}}, {"sliced", {}}}, make);
  EXPECT_THAT(made, ElementsAre(read[0].data(), read[1].data()));
  for (const void* data : made) EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
}

TEST_F(ReadMany, NothingIsMadeForWhatTheFileDoesNotHold) {
  const std::string bytes = read_file(FileSystem::real(), data_file());
  write_file_atomically(FileSystem::real(), data_file(), std::string_view(bytes).substr(0, 100));
  const auto make = [](DType, const Shape&) -> Tensor { throw InternalError("asked for memory"); };
  EXPECT_THROW(reader().read_many(std::vector<BundleReader::Wanted>{{"float1000000", {}}}, make), DataLossError);
}

TEST_F(ReadMany, AFlippedBitIsTheErrorOfItsTensorAndFile) {
  std::string bytes = read_file(FileSystem::real(), data_file());
  for (const std::string name : {"float1000000", "bool100", "bool400001"}) {
    const uint64_t place = place_of(name);
    bytes[place] ^= 1;
    write_file_atomically(FileSystem::real(), data_file(), bytes);
    const auto named = AllOf(HasSubstr(data_file() + ": tensor " + name + ": "), HasSubstr("Checksum does not match"));
    EXPECT_THAT(error_of<DataLossError>([&] { reader().read_many(all()); }), named);
    EXPECT_THAT(reader().verify(), ElementsAre(named));
    bytes[place] ^= 1;
    write_file_atomically(FileSystem::real(), data_file(), bytes);
  }
}

TEST_F(ReadMany, AFileThatEndsEarlyIsTheErrorOfWhatItLacks) {
  const std::string bytes = read_file(FileSystem::real(), data_file());
  write_file_atomically(FileSystem::real(), data_file(), std::string_view(bytes).substr(0, bytes.size() - 1));
  EXPECT_THAT(error_of<DataLossError>([&] { reader().read_many(all()); }),
              AllOf(HasSubstr(data_file()), HasSubstr("but data file 0 has")));
  EXPECT_EQ(reader().verify().size(), 2u);  // the last slice, and the tensor that lacks it
}

TEST_F(ReadMany, WhatTheDiskCannotReadIsNamedAndKeepsNothingElse) {
  BadDisk disk(place_of("float400001"));
  const BundleReader reader(disk, prefix_);
  const auto named = AllOf(HasSubstr(data_file() + ": tensor float400001: "), HasSubstr("Input/output error"));
  EXPECT_THAT(error_of<Error>([&] { reader.read_many(all()); }), named);
  EXPECT_THAT(reader.verify(), ElementsAre(named));
  EXPECT_TRUE(identical(reader.read("float1000000"), tensors_["float1000000"]));
}

}  // namespace
}  // namespace longhaul

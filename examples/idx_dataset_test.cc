#include "examples/idx_dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include <numeric>

#include "longhaul/io/files/file.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::examples {
namespace {

using ::testing::HasSubstr;

std::string gzip(const std::string& contents) {
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  std::string out(contents.size() * 2 + 1024, '\0');
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uint32_t>(contents.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(stream.total_out);
  return out;
}

std::string idx(const std::vector<uint32_t>& sizes, const std::string& bytes) {
  std::string out{0, 0, 8, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
  }
  return out + bytes;
}

// Two files of five pictures of 2 x 3 pixels, which a test may replace.
class IdxDatasetTest : public ::testing::Test {
 protected:
  static constexpr ImageFormat kFormat{.rows = 2, .columns = 3, .classes = 4};

  IdxDatasetTest() {
    std::iota(pixels_.begin(), pixels_.end(), '\0');
    put_images(gzip(idx({5, 2, 3}, pixels_)));
    put_labels(gzip(idx({5}, labels_)));
  }
  void put_images(const std::string& file) { write("train-images-idx3-ubyte.gz", file); }
  void put_labels(const std::string& file) { write("train-labels-idx1-ubyte.gz", file); }
  ImageDataset load() { return load_images(directory_.path(), "train", kFormat); }

  // The message of the error of that class that load() throws.
  template <typename ErrorClass>
  std::string error() {
    try {
      load();
    } catch (const ErrorClass& error) {
      EXPECT_THAT(error.what(), HasSubstr("apt-get install dataset-fashion-mnist"));
      EXPECT_THAT(error.what(), HasSubstr(directory_.path()));
      return error.what();
    }
    ADD_FAILURE() << "no such error";
    return "";
  }

  std::string pixels_ = std::string(30, '\0');
  std::string labels_{0, 3, 1, 2, 3};
  longhaul::testing::TemporaryDirectory directory_;

 private:
  void write(const std::string& name, const std::string& contents) {
    write_file_atomically(FileSystem::real(), directory_.file(name), contents);
  }
};

TEST_F(IdxDatasetTest, ReadsPixelsAndLabels) {
  const ImageDataset data = load();
  EXPECT_EQ(data.count, 5);
  EXPECT_EQ(data.pixels_per_image(), 6);
  EXPECT_EQ(std::string(data.pixels.get(), data.pixels.get() + 30), pixels_);
  EXPECT_EQ(std::string(data.labels.begin(), data.labels.end()), labels_);
}

TEST_F(IdxDatasetTest, ReadsTheSameInTheBackground) {
  const ImageDataset data = load_images_in_background(directory_.path(), "train", kFormat).get();
  EXPECT_EQ(std::string(data.pixels.get(), data.pixels.get() + 30), pixels_);
}

TEST_F(IdxDatasetTest, ReadsAFileOfManyChunks) {
  pixels_.resize(6 * 300'000);
  for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<char>(i * i % 251 * i % 253);
  put_images(gzip(idx({300'000, 2, 3}, pixels_)));
  put_labels(gzip(idx({300'000}, std::string(300'000, '\1'))));
  const ImageDataset data = load();
  EXPECT_EQ(std::string(data.pixels.get(), data.pixels.get() + pixels_.size()), pixels_);
}

TEST_F(IdxDatasetTest, AMissingFileIsNamedWithTheRemedy) {
  FileSystem::real().remove(directory_.file("train-labels-idx1-ubyte.gz"));
  EXPECT_THAT(error<NotFoundError>(), HasSubstr("train-labels-idx1-ubyte.gz"));
}

TEST_F(IdxDatasetTest, EveryTruncationIsAnError) {
  const std::string whole = gzip(idx({5, 2, 3}, pixels_));
  for (size_t size = 0; size < whole.size(); ++size) {
    put_images(whole.substr(0, size));
    EXPECT_THAT(error<DataLossError>(), HasSubstr("is truncated at")) << size;
  }
}

TEST_F(IdxDatasetTest, EveryFlippedByteOfTheContentsIsAnError) {
  constexpr size_t kGzipHeader = 10;  // its time stamp and flags may be anything
  const std::string whole = gzip(idx({5, 2, 3}, pixels_));
  for (size_t i = kGzipHeader; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(~damaged[i]);
    put_images(damaged);
    EXPECT_NE(error<DataLossError>(), "") << i;
  }
}

TEST_F(IdxDatasetTest, WhatIsNotGzipIsAnError) {
  put_images(idx({5, 2, 3}, pixels_));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("is damaged"));
}

TEST_F(IdxDatasetTest, AnotherMagicNumberIsAnError) {
  put_images(gzip(idx({5}, pixels_)));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("starts with 0x00000801, want 0x00000803"));
}

TEST_F(IdxDatasetTest, PicturesOfAnotherSizeAreAnError) {
  put_images(gzip(idx({5, 3, 2}, pixels_)));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("has images of 3 x 2, want 2 x 3"));
}

TEST_F(IdxDatasetTest, FewerPixelsThanTheHeaderSaysAreAnError) {
  put_images(gzip(idx({6, 2, 3}, pixels_)));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("ends after 46 of 52 bytes"));
}

TEST_F(IdxDatasetTest, MorePixelsThanTheHeaderSaysAreAnError) {
  put_images(gzip(idx({4, 2, 3}, pixels_)));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("has more than its 40 bytes"));
}

TEST_F(IdxDatasetTest, NoMemoryIsTakenForWhatTheFileCannotHold) {
  put_images(gzip(idx({0xffffffff, 2, 3}, pixels_)));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("claims 4294967295 images"));
}

TEST_F(IdxDatasetTest, NoPicturesAtAllAreAnError) {
  put_images(gzip(idx({0, 2, 3}, "")));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("claims 0 images"));
}

TEST_F(IdxDatasetTest, AnotherNumberOfLabelsIsAnError) {
  put_labels(gzip(idx({4}, "\1\1\1\1")));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("has 4 labels for 5 images"));
}

TEST_F(IdxDatasetTest, ALabelOutsideTheClassesIsAnError) {
  put_labels(gzip(idx({5}, "\1\2\3\4\1")));
  EXPECT_THAT(error<DataLossError>(), HasSubstr("has a label 4, want less than 4"));
}

// The genuine files; figures from the publisher's README and its reader.
TEST(FashionMnist, IsReadFromWhereThePackagePutsIt) {
  LONGHAUL_NEEDS("fashion_mnist", FileSystem::real().is_directory(kFashionMnistDirectory),
                 "apt-get install dataset-fashion-mnist");
  const ImageDataset train = load_images(kFashionMnistDirectory, "train");
  EXPECT_EQ(train.count, 60'000);
  EXPECT_EQ(std::vector<uint8_t>(train.labels.begin(), train.labels.begin() + 5),
            (std::vector<uint8_t>{9, 0, 0, 3, 0}));
  const double sum = std::accumulate(train.pixels.get(), train.pixels.get() + train.count * 784, 0.0);
  EXPECT_NEAR(sum / (255.0 * 784 * 60'000), 0.2860, 0.0001);
  EXPECT_EQ(load_images(kFashionMnistDirectory, "t10k").count, 10'000);
}

}  // namespace
}  // namespace longhaul::examples

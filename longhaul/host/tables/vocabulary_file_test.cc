#include "longhaul/host/tables/vocabulary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/log.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class VocabularyFileTest : public ::testing::Test {
 protected:
  std::pair<Tensor, Tensor> read(const std::string& text, DType keys = kString, DType values = kInt64) {
    write_file_atomically(FileSystem::real(), path, text);
    return read_vocabulary(FileSystem::real(), path, keys, values, format);
  }
  std::string error(const std::string& text, DType keys = kString, DType values = kInt64) {
    try {
      read(text, keys, values);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  }

  testing::TemporaryDirectory directory;
  const std::string path = directory.file("words.txt");
  VocabularyFormat format;
};

TEST_F(VocabularyFileTest, ALineAndItsNumber) {
  const auto [keys, values] = read("sun\nblue moon\nmars");
  EXPECT_TRUE(identical(keys, Tensor::of<std::string>({"sun", "blue moon", "mars"})));
  EXPECT_TRUE(identical(values, Tensor::of<int64_t>({0, 1, 2})));
}

TEST_F(VocabularyFileTest, TheLastNewlineAndCarriageReturnsDoNotCount) {
  EXPECT_TRUE(identical(read("sun\r\nmoon\r\n").first, Tensor::of<std::string>({"sun", "moon"})));
  EXPECT_EQ(read("").first.num_elements(), 0);
}

TEST_F(VocabularyFileTest, AColumnIsANumberOrText) {
  format = {.key_index = 1, .value_index = 0, .delimiter = ' '};
  const auto [keys, values] = read("0.5 sun x\n-2e3 moon\n", kString, kFloat);
  EXPECT_TRUE(identical(keys, Tensor::of<std::string>({"sun", "moon"})));
  EXPECT_TRUE(identical(values, Tensor::of<float>({0.5f, -2000.0f})));
  EXPECT_TRUE(identical(read("7 8\n", kInt64, kInt32).second, Tensor::of<int32_t>({7})));
  EXPECT_TRUE(identical(read("7 8\n", kInt64, kDouble).second, Tensor::of<double>({7.0})));
}

TEST_F(VocabularyFileTest, ABadLineIsNamed) {
  format = {.key_index = 0, .value_index = 1};
  EXPECT_EQ(error("sun\t1\nmoon\n"), path + ":2: Invalid number of columns: expected at least 2 but got 1");
  EXPECT_EQ(error("sun\tone\n"), path + ":1: Field 'one' is not a valid int64");
  EXPECT_THAT(error("sun\t1x\n"), HasSubstr("'1x' is not a valid int64"));
  EXPECT_THAT(error("sun\t99999999999\n", kString, kInt32), HasSubstr("is not a valid int32"));
  EXPECT_EQ(error("sun\t1\n\nmoon\t2\n"), path + ":2: Invalid content: empty line found");
}

TEST_F(VocabularyFileTest, OnlyTheFirstLinesAreReadWhereASizeIsGiven) {
  format.vocab_size = 2;
  EXPECT_EQ(read("sun\nmoon\n\n").first.num_elements(), 2);
  EXPECT_EQ(error("sun\n"), "Invalid vocab_size in " + path + ": expected 2 but got 1");
}

TEST_F(VocabularyFileTest, AMissingFileIsNotFound) {
  EXPECT_THROW(read_vocabulary(FileSystem::real(), directory.file("none"), kString, kInt64, format), NotFoundError);
}

}  // namespace
}  // namespace longhaul

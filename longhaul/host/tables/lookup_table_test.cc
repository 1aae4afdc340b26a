#include "longhaul/host/tables/lookup_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

const Tensor kWords = Tensor::of<std::string>({"sun", "moon"});
const Tensor kNumbers = Tensor::of<int64_t>({7, 8});

// Of all the dtypes that values may have.
class TableOfAnyValues : public ::testing::TestWithParam<Tensor> {};

TEST_P(TableOfAnyValues, WhatIsPutInIsFound) {
  const Tensor& values = GetParam();
  MutableTable table(kInt64, values.dtype());
  const Tensor keys = Tensor::of<int64_t>({1, 2});
  Tensor missing(values.dtype(), {});
  if (missing.size_bytes() > 0) std::memset(missing.mutable_data(), 0, missing.size_bytes());
  table.insert(keys, values);
  EXPECT_TRUE(identical(table.find(keys, missing), values));
}

INSTANTIATE_TEST_SUITE_P(AllValues, TableOfAnyValues,
                         ::testing::Values(Tensor::of<float>({1, 2}), Tensor::of<double>({1, 2}),
                                           Tensor::of<int32_t>({1, 2}), Tensor::of<int64_t>({1, 2}),
                                           Tensor::of<bool>({true, false}), Tensor::of<std::string>({"a", "b"})));

TEST(TableContents, OtherDtypesAreRefused) {
  EXPECT_THAT(error_of<Error>([] { TableContents::make(kFloat, kInt64); }), HasSubstr("keys of type float"));
  EXPECT_THAT(error_of<Error>([] { TableContents::make(kString, kHalf); }), HasSubstr("values of type half"));
}

TEST(ConstantTable, WhatIsNotThereHasTheDefaultAndTheKeysKeepTheirShape) {
  ConstantTable table(kString, kInt64);
  table.initialize(kWords, kNumbers);
  const Tensor asked = Tensor::of<std::string>({2, 2}, {"moon", "sun", "mars", ""});
  const Tensor found = table.find(asked, Tensor::scalar<int64_t>(-1));
  EXPECT_TRUE(identical(found, Tensor::of<int64_t>({2, 2}, {8, 7, -1, -1})));
  EXPECT_EQ(table.size(), 2);
}

TEST(ConstantTable, AnEmptyOneHasNothingToFind) {
  ConstantTable table(kString, kInt64);
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(error_of<Error>([&] { table.find(kWords, Tensor::scalar<int64_t>(-1)); }), "Table not initialized.");
  EXPECT_THROW(table.sorted(), FailedPreconditionError);
}

TEST(ConstantTable, ItIsInitialisedOnce) {
  ConstantTable table(kString, kInt64);
  table.initialize(kWords, kNumbers);
  EXPECT_NO_THROW(table.initialize(Tensor::of<std::string>({"moon", "sun"}), Tensor::of<int64_t>({8, 7})));
  EXPECT_THAT(error_of<Error>([&] { table.initialize(kWords, Tensor::of<int64_t>({7, 9})); }),
              HasSubstr("already initialized with different data"));
  EXPECT_EQ(table.find(kWords, Tensor::scalar<int64_t>(-1)).flat<int64_t>()[1], 8);
}

TEST(ConstantTable, AKeyHasOneValue) {
  ConstantTable table(kString, kInt64);
  const Tensor twice = Tensor::of<std::string>({"sun", "sun"});
  EXPECT_EQ(error_of<Error>([&] { table.initialize(twice, kNumbers); }),
            "HashTable has different value for same key: key sun has value 7, cannot add value 8");
  EXPECT_THAT(error_of<Error>([&] { table.initialize(twice, kNumbers, "words.txt"); }),
              HasSubstr("words.txt:2: HashTable"));
  EXPECT_EQ(table.size(), 0);
  EXPECT_NO_THROW(table.initialize(twice, Tensor::of<int64_t>({7, 7})));
  EXPECT_EQ(table.size(), 1);
}

TEST(ConstantTable, DtypesAndSizesMustFit) {
  ConstantTable table(kString, kInt64);
  EXPECT_THAT(error_of<Error>([&] { table.initialize(kNumbers, kNumbers); }), HasSubstr("keys are string, not int64"));
  EXPECT_THAT(error_of<Error>([&] { table.initialize(kWords, kWords); }), HasSubstr("values are int64, not string"));
  EXPECT_THAT(error_of<Error>([&] { table.initialize(kWords, Tensor::of<int64_t>({7})); }),
              HasSubstr("2 keys but 1 values"));
  table.initialize(kWords, kNumbers);
  EXPECT_THROW(table.find(kNumbers, Tensor::scalar<int64_t>(-1)), InvalidArgumentError);
}

TEST(MutableTable, ValuesAreReplacedAndRemoved) {
  MutableTable table(kString, kInt64);
  table.insert(kWords, kNumbers);
  table.insert(Tensor::of<std::string>({"sun"}), Tensor::of<int64_t>({70}));
  table.remove(Tensor::of<std::string>({"moon", "mars"}));
  const auto [keys, values] = table.sorted();
  EXPECT_TRUE(identical(keys, Tensor::of<std::string>({"sun"})));
  EXPECT_TRUE(identical(values, Tensor::of<int64_t>({70})));
}

TEST(MutableTable, AnImportReplacesAll) {
  MutableTable table(kInt64, kString);
  table.insert(Tensor::of<int64_t>({1}), Tensor::of<std::string>({"one"}));
  table.import(kNumbers, kWords);
  EXPECT_EQ(table.size(), 2);
  EXPECT_TRUE(identical(table.sorted().first, kNumbers));
}

TEST(MutableTable, ItIsSortedByKeySoThatItsBytesAreTheSameEachTime) {
  MutableTable table(kInt64, kInt64);
  table.insert(Tensor::of<int64_t>({3, -1, 2}), Tensor::of<int64_t>({30, 10, 20}));
  EXPECT_TRUE(identical(table.sorted().first, Tensor::of<int64_t>({-1, 2, 3})));
  EXPECT_TRUE(identical(table.sorted().second, Tensor::of<int64_t>({10, 20, 30})));
}

TEST(MutableTable, ThreadsMayReadAndChangeIt) {
  MutableTable table(kInt64, kInt64);
  const Tensor key = Tensor::of<int64_t>({5});
  std::thread writer([&] {
    for (int64_t i = 0; i < 1000; ++i) {
      table.insert(key, Tensor::of<int64_t>({5}));
      table.remove(key);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const int64_t found = table.find(key, Tensor::scalar<int64_t>(-1)).item<int64_t>();
    EXPECT_TRUE(found == 5 || found == -1);
  }
  writer.join();
  EXPECT_EQ(table.size(), 0);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/data/batch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

std::vector<int64_t> batch_at(const BatchOrder& order, int64_t position) {
  std::vector<int64_t> examples(static_cast<size_t>(order.size_at(position)));
  order.fill(position, examples);
  return examples;
}

// What all replicas take, step after step, until none has anything left.
std::vector<int64_t> all_of(BatchOrderOptions options) {
  std::vector<int64_t> examples;
  for (int64_t position = 0; position >= 0;) {
    int64_t taken = 0, stride = 0;
    for (options.replica = 0; options.replica < options.num_replicas; ++options.replica) {
      const BatchOrder order(options);
      for (const int64_t example : batch_at(order, position)) examples.push_back(example), ++taken;
      stride = order.stride();
    }
    position = taken == 0 ? -1 : position + stride;
  }
  return examples;
}

std::string refusal(const BatchOrderOptions& options) {
  return refusal_of([&] { const BatchOrder order(options); });
}

TEST(BatchOrder, TheReplicasTakeEachExampleOnceInEachEpoch) {
  for (const int64_t num_examples : {1, 7, 24, 100, 101}) {
    for (const int64_t num_replicas : {1, 2, 3, 8}) {
      for (const bool shuffle : {true, false}) {
        const std::vector<int64_t> examples = all_of({.num_examples = num_examples,
                                                      .batch_size = 4,
                                                      .shuffle = shuffle,
                                                      .num_epochs = 3,
                                                      .drop_remainder = false,
                                                      .num_replicas = num_replicas});
        ASSERT_EQ(examples.size(), static_cast<size_t>(3 * num_examples));
        for (auto epoch = examples.begin(); epoch != examples.end(); epoch += num_examples) {
          std::vector<int64_t> sorted(epoch, epoch + num_examples);
          std::sort(sorted.begin(), sorted.end());
          for (int64_t i = 0; i < num_examples; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
        }
      }
    }
  }
}

TEST(BatchOrder, WhatAStepTakesDoesNotDependOnHowManyShareIt) {
  const BatchOrderOptions options{.num_examples = 50, .seed = 9, .num_epochs = 4};
  BatchOrderOptions one = options, four = options;
  one.batch_size = 12;
  four.batch_size = 3;
  four.num_replicas = 4;
  EXPECT_EQ(all_of(one), all_of(four));
}

TEST(BatchOrder, ReplicasEndTogetherWhereRemaindersAreDropped) {
  BatchOrderOptions options{.num_examples = 11, .batch_size = 2, .num_epochs = 1, .num_replicas = 2};
  for (options.replica = 0; options.replica < 2; ++options.replica) {
    const BatchOrder order(options);
    EXPECT_EQ(order.size_at(4), 2);
    EXPECT_EQ(order.size_at(8), 0);
  }
}

TEST(BatchOrder, ARemainderIsASmallerBatch) {
  const BatchOrder order(
      {.num_examples = 5, .batch_size = 2, .shuffle = false, .num_epochs = 1, .drop_remainder = false});
  EXPECT_EQ(batch_at(order, 4), (std::vector<int64_t>{4}));
  EXPECT_THROW(order.check(5, "x"), OutOfRangeError);
}

TEST(BatchOrder, BatchesRunOnAcrossTheEndsOfEpochs) {
  const BatchOrder order({.num_examples = 5, .batch_size = 4, .shuffle = false});
  EXPECT_EQ(batch_at(order, 4), (std::vector<int64_t>{4, 0, 1, 2}));
}

TEST(BatchOrder, SaysWhatIsWrong) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal({.num_examples = 0}), HasSubstr("the dataset has 0 examples"));
  EXPECT_THAT(refusal({.num_examples = 1, .batch_size = 0}), HasSubstr("batch_size is 0"));
  EXPECT_THAT(refusal({.num_examples = 1, .num_epochs = -1}), HasSubstr("num_epochs is -1"));
  EXPECT_THAT(refusal({.num_examples = 1, .num_replicas = 0}), HasSubstr("num_replicas is 0"));
  EXPECT_THAT(refusal({.num_examples = 1, .num_replicas = 2, .replica = 2}), HasSubstr("replica is 2"));
  EXPECT_THAT(refusal({.num_examples = 1, .replica = -1}), HasSubstr("it must be 0 to 0"));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(refusal({.num_examples = kMost, .num_epochs = 2}), HasSubstr("num_epochs * num_examples"));
  EXPECT_THAT(refusal({.num_examples = 1, .batch_size = kMost, .num_replicas = 2}), HasSubstr("too large"));
}

TEST(BatchOrder, RefusesAPositionBeforeTheBeginning) {
  const BatchOrder order({.num_examples = 5});
  try {
    order.check(-3, "somebody");
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_STREQ(error.what(), "somebody: position -3; it must not be negative");
  }
}

}  // namespace
}  // namespace longhaul

#include "longhaul/data/data_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/step_of_thread.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Dataset> numbers(int64_t size) {
  return make_dataset(size, [](int64_t i) { return Example{Tensor::scalar(i)}; });
}

std::shared_ptr<const Dataset> numbers_in_memory(int64_t size) {
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return tensor_dataset({Tensor::of<int64_t>(std::move(all))});
}

std::vector<int64_t> examples_of(const Batch& batch) {
  return {batch[0].flat<int64_t>().begin(), batch[0].flat<int64_t>().end()};
}

std::string loader_refusal(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options) {
  return refusal_of([&] { const DataLoader loader(std::move(dataset), options); });
}

// One suite for all the ways in which a batch may come about.
struct Way {
  int num_threads;
  bool whole_batches;
};

class DataLoaderWays : public ::testing::TestWithParam<Way> {
 protected:
  std::shared_ptr<const Dataset> dataset(int64_t size) const {
    return GetParam().whole_batches ? numbers_in_memory(size) : numbers(size);
  }

  DataLoaderOptions options(DataLoaderOptions options) const {
    options.num_threads = GetParam().num_threads;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(All, DataLoaderWays,
                         ::testing::Values(Way{0, false}, Way{0, true}, Way{1, false}, Way{3, false}, Way{3, true}));

TEST_P(DataLoaderWays, ItsBatchesAreThoseOfTheOrder) {
  DataLoader loader(dataset(100), options({.batch_size = 8, .seed = 7}));
  const BatchOrder order({.num_examples = 100, .batch_size = 8, .seed = 7});
  for (int64_t position = 0; position < 400; position += 8) {
    std::vector<int64_t> expected(8);
    order.fill(position, expected);
    EXPECT_EQ(examples_of(loader.at(position)), expected);
  }
}

TEST_P(DataLoaderWays, ATrainingKilledAnywhereSeesWhatAnUndisturbedOneSees) {
  const DataLoaderOptions wanted = options({.batch_size = 6, .seed = 3});
  DataLoader undisturbed(dataset(50), wanted);
  std::map<int64_t, std::vector<int64_t>> batches;
  for (int64_t step = 0; step < 40; ++step) batches[step * 6] = examples_of(undisturbed.at(step * 6));
  for (const int64_t killed_at : {1, 2, 17, 39}) {
    for (int64_t step = 0; step < 40;) {
      DataLoader loader(dataset(50), wanted);
      for (int64_t i = 0; i < killed_at && step < 40; ++i, ++step) {
        EXPECT_EQ(examples_of(loader.at(step * 6)), batches[step * 6]) << killed_at;
      }
    }
  }
}

TEST_P(DataLoaderWays, AnAssignedPositionIsFollowed) {
  DataLoader loader(dataset(100), options({.batch_size = 4, .shuffle = false, .prefetch = 4}));
  EXPECT_EQ(examples_of(loader.at(0)), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(examples_of(loader.at(42)), (std::vector<int64_t>{42, 43, 44, 45}));
  EXPECT_EQ(examples_of(loader.at(46)), (std::vector<int64_t>{46, 47, 48, 49}));
  EXPECT_EQ(examples_of(loader.at(4)), (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST_P(DataLoaderWays, TheReplicasTakeEachExampleOnce) {
  std::map<int64_t, int> seen;
  for (int64_t replica = 0; replica < 3; ++replica) {
    DataLoader loader(dataset(48), options({.batch_size = 4, .num_epochs = 2, .num_replicas = 3, .replica = replica}));
    EXPECT_EQ(loader.stride(), 12);
    for (int64_t position = 0; position < 96; position += 12) {
      for (const int64_t example : examples_of(loader.at(position))) ++seen[example];
    }
  }
  EXPECT_EQ(seen.size(), 48u);
  for (const auto& [example, times] : seen) EXPECT_EQ(times, 2) << example;
}

TEST_P(DataLoaderWays, EndsAfterItsEpochs) {
  DataLoader loader(dataset(5), options({.batch_size = 2, .num_epochs = 1, .drop_remainder = false}));
  EXPECT_EQ(loader.next()[0].num_elements(), 2);
  EXPECT_EQ(loader.next()[0].num_elements(), 2);
  EXPECT_EQ(loader.next()[0].num_elements(), 1);
  EXPECT_THROW(loader.next(), OutOfRangeError);
}

TEST_P(DataLoaderWays, NextGoesOnBehindTheLastBatch) {
  DataLoader loader(dataset(100), options({.batch_size = 4, .shuffle = false}));
  EXPECT_EQ(examples_of(loader.next())[0], 0);
  EXPECT_EQ(examples_of(loader.next())[0], 4);
  loader.seek(40);
  EXPECT_EQ(examples_of(loader.next())[0], 40);
  loader.at(20);
  EXPECT_EQ(loader.position(), 24);
  EXPECT_EQ(examples_of(loader.next())[0], 24);
}

TEST_P(DataLoaderWays, AskedAgainItGivesTheSame) {
  DataLoader loader(dataset(100), options({.batch_size = 4}));
  EXPECT_EQ(loader.at(8)[0].data(), loader.at(8)[0].data());
}

TEST_P(DataLoaderWays, AfterAStopThereAreNoBatches) {
  DataLoader loader(dataset(100), options({.batch_size = 4}));
  loader.next();
  loader.stop();
  EXPECT_THROW(loader.next(), CancelledError);
}

TEST_P(DataLoaderWays, ABatchThatIsKeptIsNotWrittenOver) {
  DataLoader loader(dataset(1000), options({.batch_size = 4, .shuffle = false, .prefetch = 3}));
  const Batch kept = loader.at(0);
  for (int64_t position = 4; position < 400; position += 4) loader.at(position);
  EXPECT_EQ(examples_of(kept), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(DataLoader, NextInAContinuedTrainingIsNamed) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  DataLoader fresh(numbers(8), {}), placed(numbers(8), {}), outside(numbers(8), {}), continued(numbers(8), {});
  {
    const StepOfThread step(0);
    fresh.next();
  }
  outside.next();
  {
    const StepOfThread step(3);
    fresh.next();
    placed.at(3);
    placed.next();
    outside.next();
    EXPECT_THAT(lines, ::testing::IsEmpty());
    continued.next();
    continued.next();
  }
  set_log_sink(before);
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("next() is first called in step 3")));
}

TEST(DataLoader, AnErrorOfTheDatasetNamesTheExample) {
  for (const int num_threads : {0, 2}) {
    const auto dataset = make_dataset(20, [](int64_t i) -> Example {
      if (i == 11) throw std::runtime_error("cannot decode");
      return {Tensor::scalar(i)};
    });
    DataLoader loader(dataset, {.batch_size = 4, .shuffle = false, .num_threads = num_threads});
    loader.at(4);
    try {
      loader.at(8);
      FAIL();
    } catch (const UnknownError& error) {
      EXPECT_STREQ(error.what(), "data loader: example 11, at position 11: cannot decode");
    }
    EXPECT_EQ(loader.position(), 8);
    EXPECT_EQ(examples_of(loader.at(12))[0], 12);
  }
}

// Returns one row too few.
class ShortBatches : public BatchDataset {
 public:
  int64_t size() const override { return 10; }
  Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const override {
    return {memory.make(kFloat, {static_cast<int64_t>(indices.size()) - 1})};
  }
};

TEST(DataLoader, RefusesABatchOfAnotherSize) {
  DataLoader loader(std::make_shared<ShortBatches>(), {.batch_size = 4, .shuffle = false});
  try {
    loader.at(4);
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the batch of 4 examples starting with 4, at position 4: the dataset returned float[3]"));
  }
}

TEST(DataLoader, SaysWhatIsWrong) {
  EXPECT_THAT(loader_refusal(nullptr, {}), HasSubstr("null pointer"));
  EXPECT_THAT(loader_refusal(numbers(0), {}), HasSubstr("the dataset has 0 examples"));
  EXPECT_THAT(loader_refusal(numbers(5), {.batch_size = 0}), HasSubstr("batch_size is 0"));
  EXPECT_THAT(loader_refusal(numbers(5), {.num_replicas = 2, .replica = 2}), HasSubstr("replica is 2"));
  EXPECT_THAT(loader_refusal(numbers(5), {.num_threads = -1}), HasSubstr("num_threads is -1"));
  EXPECT_THAT(loader_refusal(numbers(5), {.prefetch = -1}), HasSubstr("prefetch is -1"));
  EXPECT_THAT(loader_refusal(numbers(5), {.num_threads = 3, .prefetch = 2}),
              HasSubstr("prefetch is 2 and num_threads 3"));
  EXPECT_EQ(loader_refusal(numbers(5), {.num_threads = 3, .prefetch = 3}), "");
  EXPECT_THAT(loader_refusal(numbers(5), {.timeout = Seconds{-1}}), HasSubstr("timeout is -1"));
  EXPECT_THAT(loader_refusal(numbers(5), {.timeout = Seconds{std::nan("")}}), HasSubstr("timeout is nan"));
  DataLoader loader(numbers(5), {});
  EXPECT_THROW(loader.at(-1), InvalidArgumentError);
}

TEST(DataLoader, EachThreadPreparesABatch) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  std::atomic<bool> met{false};
  const auto dataset = make_dataset(100, [&](int64_t i) {
    std::unique_lock<std::mutex> lock(mutex);
    if (++inside == 3) met = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return met.load(); });
    --inside;
    return Example{Tensor::scalar(i)};
  });
  DataLoader loader(dataset, {.num_threads = 3});
  loader.next();
  EXPECT_TRUE(met);
}

TEST(DataLoader, ASeekDuringACallIsKept) {
  DataLoader* own = nullptr;
  const auto dataset = make_dataset(100, [&](int64_t i) {
    if (i == 4) own->seek(40);
    return Example{Tensor::scalar(i)};
  });
  DataLoader loader(dataset, {.batch_size = 2, .shuffle = false, .num_threads = 0});
  own = &loader;
  for (const int64_t first : {0, 2, 4, 40, 42}) EXPECT_EQ(examples_of(loader.next())[0], first);
}

// Whole batches of positions instead of examples.
class Positions : public BatchDataset {
 public:
  int64_t size() const override { return 10; }
  Batch get_batch(std::span<const int64_t>, const BatchMemory&) const override {
    throw InternalError("the position is not to be lost");
  }
  Batch get_batch_at(std::span<const int64_t> indices, int64_t position, const BatchMemory&) const override {
    std::vector<int64_t> positions(indices.size());
    std::iota(positions.begin(), positions.end(), position);
    return {Tensor::of<int64_t>(std::move(positions))};
  }
};

TEST(DataLoader, AWholeBatchKnowsItsPosition) {
  const auto dataset = std::make_shared<Positions>();
  DataLoader loader(dataset, {.batch_size = 4, .seed = 3});
  EXPECT_EQ(examples_of(loader.at(12)), (std::vector<int64_t>{12, 13, 14, 15}));
  EXPECT_EQ(dataset->get_at(7, 21)[0].item<int64_t>(), 21);
}

TEST(DataLoader, SeveralThreadsMayAsk) {
  DataLoader loader(numbers(10'000), {.batch_size = 5, .shuffle = false, .num_threads = 2});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t position = thread * 1000 + i * 5;
        if (examples_of(loader.at(position))[0] != position) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DataLoader, UsesTheMemoryOfBatchesAgain) {
  DataLoader loader(numbers_in_memory(1000), {.batch_size = 100, .num_threads = 0});
  std::map<const void*, int> blocks;
  for (int i = 0; i < 20; ++i) ++blocks[loader.next()[0].data()];
  EXPECT_EQ(blocks.size(), 1u);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "longhaul/base/error.h"
#include "longhaul/data/stack_examples.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

Batch stack(const Dataset& dataset, const std::vector<int64_t>& examples) {
  return stack_examples(dataset, examples, 100, BatchMemory(), false);
}

std::shared_ptr<const Dataset> pairs() {
  return tensor_dataset({Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21}), Tensor::of<std::string>({"a", "b", "c"})});
}

TEST(TensorDataset, ItsExamplesAreRows) {
  const auto dataset = pairs();
  EXPECT_EQ(dataset->size(), 3);
  const Example example = dataset->get(1);
  ASSERT_EQ(example.size(), 2u);
  EXPECT_TRUE(identical(example[0], Tensor::of<float>({10, 11})));
  EXPECT_TRUE(identical(example[1], Tensor::scalar("b")));
}

TEST(TensorDataset, ItsBatchesAreRowsInTheOrderAskedFor) {
  const auto dataset = pairs();
  const Batch batch = static_cast<const BatchDataset&>(*dataset).get_batch(std::vector<int64_t>{2, 0, 2}, {});
  EXPECT_TRUE(identical(batch[0], Tensor::of<float>({3, 2}, {20, 21, 0, 1, 20, 21})));
  EXPECT_TRUE(identical(batch[1], Tensor::of<std::string>({"c", "a", "c"})));
}

TEST(TensorDataset, NeedsTensorsOfAsManyRows) {
  EXPECT_THAT(refusal_of([] { tensor_dataset({}); }), HasSubstr("at least one tensor"));
  EXPECT_THAT(refusal_of([] { tensor_dataset({Tensor::scalar(1.0f)}); }), HasSubstr("no rows"));
  EXPECT_THAT(refusal_of([] { tensor_dataset({Tensor::of<float>({1, 2}), Tensor::of<float>({1})}); }),
              HasSubstr("2 and 1 rows"));
  EXPECT_THAT(refusal_of([] { tensor_dataset({Tensor()}); }), HasSubstr("no rows"));
}

TEST(StackExamples, PutsEachAtItsPlace) {
  const auto dataset = make_dataset(10, [](int64_t i) {
    return Example{Tensor::scalar(i), Tensor::of<float>({2, 1}, {static_cast<float>(i), 0.5f}),
                   Tensor::scalar(std::to_string(i))};
  });
  const Batch batch = stack(*dataset, {7, 3});
  EXPECT_TRUE(identical(batch[0], Tensor::of<int64_t>({7, 3})));
  EXPECT_TRUE(identical(batch[1], Tensor::of<float>({2, 2, 1}, {7, 0.5f, 3, 0.5f})));
  EXPECT_TRUE(identical(batch[2], Tensor::of<std::string>({"7", "3"})));
}

TEST(StackExamples, TellsADatasetTheTimeAtWhichItsExampleIsTaken) {
  const auto dataset = make_dataset(
      10, [](int64_t index, int64_t position) { return Example{Tensor::scalar(index), Tensor::scalar(position)}; });
  const Batch batch = stack(*dataset, {7, 3});
  EXPECT_TRUE(identical(batch[0], Tensor::of<int64_t>({7, 3})));
  EXPECT_TRUE(identical(batch[1], Tensor::of<int64_t>({100, 101})));
}

TEST(StackExamples, NamesTheExampleThatFailed) {
  const auto dataset = make_dataset(10, [](int64_t i) -> Example {
    if (i == 4) throw DataLossError("the file is damaged");
    return {Tensor::scalar(i)};
  });
  EXPECT_EQ(error_of<DataLossError>([&] { stack(*dataset, {3, 4, 5}); }),
            "data loader: example 4, at position 101: the file is damaged");
}

TEST(StackExamples, AnErrorOfADatasetIsNoEndOfTheInput) {
  const auto dataset = make_dataset(10, [](int64_t) -> Example { throw OutOfRangeError("no such row"); });
  EXPECT_THAT(refusal_of([&] { stack(*dataset, {3}); }), HasSubstr("no such row"));
}

TEST(StackExamples, RefusesExamplesThatAreNotAlike) {
  const auto dataset = make_dataset(6, [](int64_t i) -> Example {
    if (i == 1) return {};
    if (i == 2) return {Tensor()};
    if (i == 3) return {Tensor::of<float>({1, 2})};
    if (i == 4) return {Tensor::scalar(1.0)};
    if (i == 5) return {Tensor::scalar(1.0f), Tensor::scalar(1.0f)};
    return {Tensor::scalar(1.0f)};
  });
  const auto error = [&](int64_t i) { return refusal_of([&] { stack(*dataset, {0, i}); }); };
  EXPECT_THAT(error(1), HasSubstr("example 1, at position 101: the dataset returned no tensors"));
  EXPECT_THAT(error(2), HasSubstr("component 0 is not a tensor"));
  EXPECT_THAT(error(3), HasSubstr("component 0 is float[2], but that of the first example of its batch is float[]"));
  EXPECT_THAT(error(4), HasSubstr("component 0 is double[]"));
  EXPECT_THAT(error(5), HasSubstr("2 components, but the first example of its batch has 1"));
  EXPECT_THAT(error(0), "");
}

TEST(StackExamples, StopsBeforeTheNextExampleOnceItIsAbandoned) {
  std::atomic<bool> abandoned = false;
  int calls = 0;
  const auto dataset = make_dataset(10, [&](int64_t i) {
    ++calls;
    abandoned = true;
    return Example{Tensor::scalar(i)};
  });
  EXPECT_THROW(stack_examples(*dataset, std::vector<int64_t>{1, 2, 3}, 0, {}, abandoned), CancelledError);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace longhaul

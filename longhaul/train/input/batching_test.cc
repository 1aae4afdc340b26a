#include "longhaul/train/input/batching.h"

#include <algorithm>
#include <set>

#include "longhaul/train/input/pipeline_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using IntBatch = std::vector<int32_t>;

class Batching : public PipelineTest {
 protected:
  // An example of each dtype and of one row: 0, then 1, ...
  Output label(const Output& number) {
    return ops::gather_rows(root_, strings({"zero", "one", "two", "three", "four", "five", "six", "seven"}), number);
  }
  SparseOutput sparse(const Output& number) {
    const Output index = ops::constant(root_, Tensor::of<int64_t>(Shape{1, 1}, {2}));
    const Output size = ops::constant(root_, Tensor::of<int64_t>({5}));
    return {index, ops::expand_dims(root_, number, 0), size};
  }
};

std::vector<int32_t> flattened(const std::vector<IntBatch>& batches) {
  std::vector<int32_t> all;
  for (const IntBatch& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST_F(Batching, OneThreadKeepsTheOrderOfAllComponents) {  // IN-8
  const Output number = numbers(8);
  const auto batch = longhaul::batch(root_, {number, label(number)}, {.batch_size = 4});
  EXPECT_EQ(Output(batch[0]).shape(), (Shape{4}));
  start();
  const auto first = session_->run({Fetch(Output(batch[0])), Fetch(Output(batch[1]))}, {}, {.timeout = Seconds(20)});
  EXPECT_THAT(first[0].flat<int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first[1].flat<std::string>(), ElementsAre("zero", "one", "two", "three"));
  EXPECT_THAT(take<std::string>(batch[1]), ElementsAre("four", "five", "six", "seven"));
  EXPECT_THROW(take<int32_t>(batch[0]), OutOfRangeError);
}

TEST_F(Batching, SeveralThreadsKeepTheSetOfExamples) {  // IN-8
  const auto batch = longhaul::batch(root_, {numbers(40)}, {.batch_size = 8, .num_threads = 4});
  start();
  std::vector<int32_t> seen = flattened(take_all_batches<int32_t>(batch[0]));
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 40u);
  for (int32_t i = 0; i < 40; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(Batching, AnyDtypeGoesThrough) {  // IN-8
  const std::vector<Tensor> examples{Tensor::scalar<uint32_t>(4'000'000'000u), Tensor::scalar<uint64_t>(~uint64_t{0}),
                                     Tensor::scalar(true), Tensor::scalar(2.5), Tensor::scalar("text")};
  InputTensors tensors;
  for (const Tensor& example : examples) {
    tensors.emplace_back(limit_epochs(root_, ops::constant(root_, example), 4, "epochs"));
  }
  const auto batch = longhaul::batch(root_, tensors, {.batch_size = 2});
  start();
  EXPECT_THAT(take<uint32_t>(batch[0]), ElementsAre(4'000'000'000u, 4'000'000'000u));
  EXPECT_THAT(take<uint64_t>(batch[1]), ElementsAre(~uint64_t{0}, ~uint64_t{0}));
}

TEST_F(Batching, SparseComponentsComeOutAsOneSparseTensor) {  // IN-8
  const auto batch = longhaul::batch(root_, {sparse(numbers(4))}, {.batch_size = 2});
  ASSERT_TRUE(batch[0].is_sparse());
  const SparseOutput& sparse = batch[0].sparse();
  start();
  const auto values = session_->run({Fetch(sparse.indices), Fetch(sparse.values), Fetch(sparse.dense_shape)}, {},
                                    {.timeout = Seconds(20)});
  EXPECT_THAT(values[0].flat<int64_t>(), ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(values[1].flat<int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(values[2].flat<int64_t>(), ElementsAre(2, 5));
  EXPECT_THROW(static_cast<Output>(batch[0]), InvalidArgumentError);
}

TEST_F(Batching, DynamicPaddingFillsUpBehind) {  // IN-8
  const Output number = numbers(4);
  const Output ones = ops::constant(root_, Tensor::of<bool>({true, false, true, true}));
  const Output mask = ops::gather_rows(root_, ones, number);
  const Output words =
      ops::mask_rows(root_, ops::expand_dims(root_, label(number), 0), ops::reshape_any(root_, mask, {1}));
  const auto batch = longhaul::batch(root_, {words}, {.batch_size = 4, .dynamic_pad = true});
  start();
  const Tensor padded = session_->run(Output(batch[0]), {}, {.timeout = Seconds(20)});
  EXPECT_EQ(padded.shape(), (Shape{4, 1}));
  EXPECT_THAT(padded.flat<std::string>(), ElementsAre("zero", "", "two", "three"));
}

TEST_F(Batching, EnqueueManySplitsTheFirstDimension) {  // IN-8
  const Output three = limit_epochs(root_, ops::constant(root_, Tensor::of<int32_t>({1, 2, 3})), 2);
  const auto batch = longhaul::batch(root_, {three}, {.batch_size = 2, .enqueue_many = true});
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{1, 2}, IntBatch{3, 1}, IntBatch{2, 3}));
}

TEST_F(Batching, ARemainderIsDropped) {  // IN-8
  const auto batch = longhaul::batch(root_, {numbers(5)}, {.batch_size = 2});
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{0, 1}, IntBatch{2, 3}));
}

TEST_F(Batching, OrComesLastIfItIsAskedFor) {  // IN-8
  const auto batch = longhaul::batch(root_, {numbers(5)}, {.batch_size = 2, .allow_smaller_final_batch = true});
  EXPECT_EQ(Output(batch[0]).shape(), (Shape{-1}));
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{0, 1}, IntBatch{2, 3}, IntBatch{4}));
}

TEST_F(Batching, AnUnknownRankIsRefused) {  // IN-8
  const Output unknown = ops::placeholder(root_, kFloat);
  EXPECT_THAT(error_of([&] { longhaul::batch(root_, {unknown}, {.batch_size = 2}); }),
              HasSubstr("Cannot infer Tensor's rank"));
  EXPECT_NO_THROW(longhaul::batch(root_, {unknown}, {.batch_size = 2, .shapes = {Shape{3}}}));
}

TEST_F(Batching, DictionariesComeBackAsDictionaries) {  // IN-7
  const Output number = numbers(4);
  const NamedInputTensors example{{"word", label(number)}, {"number", number}};
  const NamedInputTensors batch = longhaul::batch(root_, example, {.batch_size = 2});
  ASSERT_EQ(batch.size(), 2u);
  start();
  const auto values =
      session_->run({Fetch(Output(batch.at("number"))), Fetch(Output(batch.at("word")))}, {}, {.timeout = Seconds(20)});
  EXPECT_THAT(values[0].flat<int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(values[1].flat<std::string>(), ElementsAre("zero", "one"));
}

TEST_F(Batching, ADictionaryOfOneKeepsItsShape) {  // IN-8
  const Output pair = ops::constant(root_, Tensor::of<float>({1, 2}));
  const NamedInputTensors batch = longhaul::batch(root_, NamedInputTensors{{"c", pair}}, {.batch_size = 8});
  EXPECT_EQ(Output(batch.at("c")).shape(), (Shape{8, 2}));
}

TEST_F(Batching, JoinedSourcesKeepTheirOwnOrder) {  // IN-9
  const Output small = numbers(20);
  const Output large = ops::gather_rows(root_,
                                        ops::constant(root_,
                                                      [] {
                                                        std::vector<int32_t> values(20);
                                                        for (size_t i = 0; i < 20; ++i)
                                                          values[i] = 100 + static_cast<int32_t>(i);
                                                        return Tensor::of(values);
                                                      }()),
                                        numbers(20));
  const auto batch = batch_join(root_, std::vector<InputTensors>{{small}, {large}}, {.batch_size = 5});
  start();
  std::vector<int32_t> from_small, from_large;
  for (int32_t value : flattened(take_all_batches<int32_t>(batch[0]))) {
    (value < 100 ? from_small : from_large).push_back(value);
  }
  EXPECT_EQ(from_small.size() + from_large.size(), 40u);
  EXPECT_TRUE(std::is_sorted(from_small.begin(), from_small.end()));
  EXPECT_TRUE(std::is_sorted(from_large.begin(), from_large.end()));
}

TEST_F(Batching, JoinedSourcesMustBeAlike) {  // IN-9
  const Output a = ops::constant(root_, 1), b = ops::constant(root_, 2.0f);
  const std::vector<NamedInputTensors> other_keys{{{"a", a}}, {{"b", a}}};
  EXPECT_THAT(error_of([&] { batch_join(root_, other_keys, {.batch_size = 2}); }),
              HasSubstr("must have the same keys"));
  EXPECT_THROW(batch_join(root_, std::vector<InputTensors>{{a}, {a, a}}, {.batch_size = 2}), InvalidArgumentError);
  EXPECT_THROW(batch_join(root_, std::vector<InputTensors>{{a}, {b}}, {.batch_size = 2}), InvalidArgumentError);
  EXPECT_THROW(batch_join(root_, std::vector<InputTensors>{}, {.batch_size = 2}), InvalidArgumentError);
}

TEST_F(Batching, AShuffleKeepsTheSetAndChangesTheOrder) {  // IN-10
  const auto batch =
      shuffle_batch(root_, {numbers(60)}, {.batch_size = 10, .capacity = 32, .min_after_dequeue = 16, .seed = 5});
  start();
  std::vector<int32_t> seen = flattened(take_all_batches<int32_t>(batch[0]));
  EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 60u);
  EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 60u);
}

TEST_F(Batching, AShuffleNeedsRoomAboveItsMinimum) {  // IN-10
  EXPECT_THROW(
      shuffle_batch(root_, {ops::constant(root_, 1)}, {.batch_size = 2, .capacity = 8, .min_after_dequeue = 8}),
      InvalidArgumentError);
}

TEST_F(Batching, SummariesTellHowFullTheQueueIs) {  // IN-10, IN-6
  shuffle_batch(root_, {ops::constant(root_, 1)}, {.batch_size = 2, .capacity = 32, .min_after_dequeue = 7});
  longhaul::batch(root_, {ops::constant(root_, 1)}, {.batch_size = 2, .capacity = 50});
  std::vector<std::string> tags;
  for (const Output& summary : graph_.collection_of<Output>(collections::kSummaries)) {
    tags.push_back(summary.op().inputs()[0].op().attr<Tensor>("value").item<std::string>());
  }
  EXPECT_THAT(tags, ElementsAre("shuffle_batch/fraction_over_7_of_25_full", "batch/fraction_of_50_full"));
}

TEST_F(Batching, JoinedSourcesAreShuffledTogether) {  // IN-9, IN-10
  const auto batch = shuffle_batch_join(root_, std::vector<InputTensors>{{numbers(20)}, {numbers(20)}},
                                        {.batch_size = 10, .capacity = 32, .min_after_dequeue = 16});
  start();
  std::vector<int32_t> seen = flattened(take_all_batches<int32_t>(batch[0]));
  EXPECT_EQ(std::multiset<int32_t>(seen.begin(), seen.end()).count(7), 2u);
  EXPECT_EQ(seen.size(), 40u);
}

class MaybeBatching : public Batching {
 protected:
  Output is_even(const Output& number) {
    return ops::gather_rows(
        root_, ops::constant(root_, Tensor::of<bool>({true, false, true, false, true, false, true, false})), number);
  }
};

TEST_F(MaybeBatching, AScalarDropsWholeExamples) {  // IN-11
  const Output number = numbers(8);
  const auto batch = maybe_batch(root_, {number, label(number)}, is_even(number), {.batch_size = 2});
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{0, 2}, IntBatch{4, 6}));
}

TEST_F(MaybeBatching, AVectorDropsExamplesOfMany) {  // IN-11
  const Output many = limit_epochs(root_, ops::constant(root_, Tensor::of<int32_t>({0, 1, 2, 3})), 2);
  const auto batch = maybe_batch(root_, {many}, is_even(many), {.batch_size = 2, .enqueue_many = true});
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{0, 2}, IntBatch{0, 2}));
}

TEST_F(MaybeBatching, AScalarDropsAllOfMany) {  // IN-11
  const Output number = numbers(4);
  const Output pair = ops::gather_rows(
      root_, ops::constant(root_, Tensor::of<int32_t>({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31})), number);
  const auto batch = maybe_batch(root_, {pair}, is_even(number), {.batch_size = 2, .enqueue_many = true});
  start();
  EXPECT_THAT(take_all_batches<int32_t>(batch[0]), ElementsAre(IntBatch{0, 1}, IntBatch{20, 21}));
}

TEST_F(MaybeBatching, TheOtherFormsDropTheSame) {  // IN-11
  const Output number = numbers(8), other = numbers(8);
  const auto joined = maybe_batch_join(root_, {{number}}, is_even(number), {.batch_size = 4});
  const auto shuffled =
      maybe_shuffle_batch(root_, {other}, is_even(other), {.batch_size = 4, .capacity = 10, .min_after_dequeue = 1});
  start();
  EXPECT_THAT(take<int32_t>(joined[0]), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(take<int32_t>(shuffled[0]), ::testing::UnorderedElementsAre(0, 2, 4, 6));
}

TEST_F(MaybeBatching, WhatToKeepIsAScalarOrOneForEachExample) {  // IN-11
  const Output x = ops::constant(root_, 1), bools = ops::constant(root_, Tensor::of<bool>({true, false}));
  const auto error = [&](const Output& keep, bool enqueue_many) {
    return error_of([&] { maybe_batch(root_, {x}, keep, {.batch_size = 2, .enqueue_many = enqueue_many}); });
  };
  EXPECT_THAT(error(bools, false), HasSubstr("`keep_input` cannot be a vector"));
  EXPECT_THAT(error(ops::constant(root_, Tensor(kBool, {2, 2})), true), HasSubstr("must be 0 or 1 dimensions"));
  EXPECT_THAT(error(ops::placeholder(root_, kBool), true), HasSubstr("known number of dimensions"));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/host/queues/random_stream.h"

#include <gtest/gtest.h>

#include <set>

#include "longhaul/ops/input/row_ops.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

TEST(RandomStream, EachDrawHasASeedOfItsOwn) {
  std::set<uint64_t> seeds;
  for (uint64_t key : {0u, 1u, 2u}) {
    RandomStream stream(key);
    for (int i = 0; i < 1000; ++i) {
      seeds.insert(stream.take_for_step().seed);
      seeds.insert(stream.take_for_other_run().seed);
    }
  }
  EXPECT_EQ(seeds.size(), 6000u);
}

TEST(RandomStream, AStepThatHasNotWrittenDoesNotCount) {
  RandomStream stream(7);
  stream.commit(stream.take_for_step());
  const RandomStream::Draw under_way = stream.take_for_step();
  EXPECT_EQ(stream.state().steps, 1);
  RandomStream again(99);
  again.restore(stream.state());
  EXPECT_EQ(again.take_for_step().seed, under_way.seed);
}

TEST(RandomStream, ADrawThatIsGivenBackIsTakenAgain) {
  RandomStream stream(7);
  stream.commit(stream.take_for_step());
  const RandomStream::Draw failed = stream.take_for_step();
  stream.give_back(failed);
  const RandomStream::Draw again = stream.take_for_step();
  EXPECT_EQ(again.number, 1);
  EXPECT_EQ(again.seed, failed.seed);
}

TEST(RandomStream, OneThatCountsOrWasOvertakenIsNot) {
  RandomStream stream(7);
  const RandomStream::Draw first = stream.take_for_step();
  stream.commit(first);
  stream.give_back(first);
  const RandomStream::Draw second = stream.take_for_step();
  EXPECT_EQ(second.number, 1);
  EXPECT_EQ(stream.take_for_step().number, 2);
  stream.give_back(second);
  EXPECT_EQ(stream.take_for_step().number, 3);
}

TEST(RandomStream, OtherRunsLeaveTheNumbersOfStepsAsTheyAre) {
  RandomStream alone(7), beside(7);
  alone.commit(alone.take_for_step());
  beside.commit(beside.take_for_step());
  beside.take_for_other_run();
  EXPECT_EQ(beside.state().others, 1);
  EXPECT_EQ(alone.take_for_step().seed, beside.take_for_step().seed);
}

TEST(RandomStream, StepsThatOvertakeEachOtherCountOnce) {
  RandomStream stream(7);
  const auto first = stream.take_for_step(), second = stream.take_for_step();
  stream.commit(second);
  stream.commit(first);
  EXPECT_EQ(stream.state().steps, 2);
}

TEST(RandomStream, StartsOverFromItsOwnKey) {
  RandomStream stream(7);
  const auto first = stream.take_for_step();
  stream.restore({.key = 8, .steps = 5, .others = 3});
  EXPECT_EQ(stream.state().key, 8u);
  stream.start_over();
  EXPECT_EQ(stream.take_for_step().seed, first.seed);
  EXPECT_EQ(stream.state().others, 0);
}

TEST(RandomStream, ItsStateIsThreeNumbers) {
  const auto state = random_state_of(as_tensor({.key = ~uint64_t{0}, .steps = 5, .others = 3}));
  EXPECT_EQ(state.key, ~uint64_t{0});
  EXPECT_EQ(state.steps, 5);
  EXPECT_EQ(state.others, 3);
  EXPECT_THROW(random_state_of(Tensor::of<int64_t>({1, 2})), InvalidArgumentError);
  EXPECT_THROW(random_state_of(Tensor::of<float>({1, 2, 3})), InvalidArgumentError);
}

TEST(RandomStream, ItsKeyFollowsFromTheSeedsAndTheName) {
  std::set<uint64_t> keys;
  const auto key = [](uint64_t graph_seed, int64_t seed, const char* name) {
    Graph graph;
    graph.set_seed(graph_seed);
    const Scope root(graph);
    ResourceMap resources;
    const Output x = ops::random_shuffle(root, ops::constant(root, Tensor::of<int64_t>({1, 2})), seed, name);
    return random_stream(x.op(), resources)->state().key;
  };
  keys = {key(1, 0, "a"), key(2, 0, "a"), key(1, 1, "a"), key(1, 0, "b"), key(0, 1, "a")};
  EXPECT_EQ(keys.size(), 5u);
  EXPECT_EQ(key(1, 0, "a"), key(1, 0, "a"));
  EXPECT_NE(key(0, 0, "a"), key(0, 0, "a"));
}

}  // namespace
}  // namespace longhaul

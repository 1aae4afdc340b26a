#include "longhaul/runtime/plan/plan_builder.h"

#include <gmock/gmock.h>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/plan/plan.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class PlanBuilderTest : public ::testing::Test {
 protected:
  PlanParts build(const std::vector<Fetch>& fetches, const std::vector<Output>& feeds) {
    Session::Request request{.feeds = feeds};
    for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph_));
    return PlanBuilder(request, *session_).build();
  }
  Output negative(const Output& x) { return ops::aten(root_, "aten::neg", "neg", {{"self", x}}).output(); }

  Graph graph_;
  Scope root_{graph_};
  Output x_ = ops::placeholder(root_, kFloat, {}, "x");
  const std::shared_ptr<SessionState> session_ = std::make_shared<SessionState>();
};

std::vector<ValuePlace> places_of_feeds(const PlanParts& parts) {
  std::vector<ValuePlace> places;
  for (const PlanParts::Feed& feed : parts.feeds) places.push_back(feed.place);
  return places;
}

TEST_F(PlanBuilderTest, AFeedIsLibtorchsIfAnOperatorOfItTakesIt) {
  const Output y = ops::placeholder(root_, kFloat, {}, "y");
  EXPECT_THAT(places_of_feeds(build({negative(x_), y}, {x_, y})),
              ElementsAre(ValuePlace::kLibtorch, ValuePlace::kHost));
}

TEST_F(PlanBuilderTest, WhatNeedsNoLibtorchSaysSo) {
  FIFOQueue queue(root_, 2, {kFloat}, {.shapes = {Shape{}}});
  const PlanParts put = build({queue.enqueue(root_, {x_})}, {x_});
  EXPECT_TRUE(put.only_host);
  ASSERT_TRUE(put.single_call);
  EXPECT_EQ(put.single_call->instruction, put.instructions[0]->as_host());
  const PlanParts put_negative = build({queue.enqueue(root_, {negative(x_)})}, {x_});
  EXPECT_FALSE(put_negative.only_host);
  EXPECT_FALSE(put_negative.single_call);
  EXPECT_EQ(put_negative.instructions[0]->as_host(), nullptr);
}

TEST_F(PlanBuilderTest, WhatIsWrittenIsNamedOnce) {
  const Variable v = ops::variable(root_, "v", Tensor::scalar(1.f)), w = ops::variable(root_, "w", Tensor::scalar(1.f));
  const Output first = ops::assign_add(root_, v, x_);
  const Output second = ops::assign_add(root_.with_control_dependencies({first.op()}), v, x_);
  const PlanParts parts = build({first.op(), second.op(), ops::assign_add(root_, w, x_).op()}, {x_});
  EXPECT_TRUE(parts.writes_variables());
  EXPECT_THAT(parts.written, ::testing::UnorderedElementsAre(session_->variables().slot("v").get(),
                                                             session_->variables().slot("w").get()));
  EXPECT_THAT(parts.checks_first, SizeIs(2)) << "the second write of v is checked when the first is done";
  EXPECT_THAT(build({v}, {}).written, SizeIs(0));
}

TEST_F(PlanBuilderTest, AValueThatIsFetchedTwiceIsMovedOnce) {
  const PlanParts parts = build({x_, x_, ops::constant(root_, 1.f)}, {x_});
  EXPECT_FALSE(parts.fetches[0].may_move);
  EXPECT_TRUE(parts.fetches[1].may_move);
  EXPECT_FALSE(parts.fetches[2].may_move) << "it is needed by the next execution";
}

TEST_F(PlanBuilderTest, APlanRunsWhatWasBuiltWhenTheBuilderIsGone) {
  Plan plan(build({negative(x_)}, {x_}), session_);
  const Tensor two = Tensor::scalar(2.f);
  const Tensor* const feeds[] = {&two};
  std::vector<Tensor> results;
  plan.run(feeds, /*limits=*/{}, &results, /*trace=*/nullptr);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].item<float>(), -2);
}

}  // namespace
}  // namespace longhaul

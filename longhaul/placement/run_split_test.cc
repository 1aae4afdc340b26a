#include "longhaul/placement/run_split.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "longhaul/placement/bundles.h"
#include "longhaul/placement/placement_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunSplitTest : public PlacementTest {
 protected:
  RunSplit split(const std::vector<Fetch>& fetches) {
    const Session::Request asked = request(fetches, {}, graph_);
    const RunOrder run(asked);
    return split_run(SharedOrder(run, placer_.place(graph_, run.operations(), devices_)));
  }

  // "x": is run; "x:0 > 1.0": sent as slot 0 of message 1; "^x > 1": a message without values; "1.0 > x:0": received.
  static std::vector<std::string> steps(const RunSplit& split, const std::string& task) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < split.tasks.size(); ++i) {
      if (split.tasks[i] != task) continue;
      for (const PartStep& step : split.parts[i]) texts.push_back(text(split, step));
    }
    return texts;
  }

  static std::string text(const RunSplit& split, const PartStep& step) {
    if (step.kind == PartStep::kRun) return step.op.name();
    const Transfer& transfer = split.transfers[static_cast<size_t>(step.transfer)];
    const std::string what = transfer.has_value() ? transfer.value.name() : "^" + transfer.after.name();
    const std::string message =
        transfer.has_value() ? fmt::format("{}.{}", transfer.bundle, transfer.slot) : std::to_string(transfer.bundle);
    return step.kind == PartStep::kSend ? what + " > " + message : message + " > " + what;
  }

  const Scope ps0_ = on("/job:ps/task:0"), ps1_ = on("/job:ps/task:1"), worker_ = on("/job:worker/task:0");
  const std::string on_ps0_ = "/job:ps/replica:0/task:0", on_ps1_ = "/job:ps/replica:0/task:1",
                    on_worker_ = "/job:worker/replica:0/task:0";
};

TEST_F(RunSplitTest, AValueIsSentAfterItIsComputedAndReceivedBeforeItIsUsed) {  // GP-10
  const Output a = join(ps0_, "a", {constant(ps0_, "c")});
  const Output other = join(worker_, "other", {constant(worker_, "d")});
  const RunSplit run = split({other, join(worker_, "b", {a})});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("a", "a:0 > 0.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("other", "0.0 > a:0", "b"));
}

TEST_F(RunSplitTest, AValueGoesToATaskOnce) {  // unlike GP-11
  const Output a = join(ps0_, "a", {constant(ps0_, "c")});
  const Output x = join(worker_, "x", {a, a}), y = join(worker_, "y", {a});
  const RunSplit run = split({x, y, join(ps1_, "z", {a})});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("a", "a:0 > 0.0", "a:0 > 1.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > a:0", "x", "y"));
}

TEST_F(RunSplitTest, AVariableIsReadOnceForAllReadersOfATask) {  // unlike GP-13
  const Output v = variable(ps0_, "v");
  const RunSplit run = split({join(worker_, "x", {v}), join(worker_, "y", {v})});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("v:0 > 0.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > v:0", "x", "y"));
}

TEST_F(RunSplitTest, ConstantsAreNotSent) {
  const Output c = constant(ps0_, "c");
  EXPECT_TRUE(split({join(worker_, "x", {c}), join(ps1_, "y", {c})}).transfers.empty());
}

TEST_F(RunSplitTest, AControlEdgeIsAMessageWithoutValues) {  // unlike GP-12
  const Output a = join(ps0_, "a", {constant(ps0_, "c")});
  const Output b = join(worker_.with_control_dependencies({a.op()}), "b", {constant(worker_, "d")});
  const RunSplit run = split({b});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("a", "^a > 0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0 > ^a", "b"));
}

TEST_F(RunSplitTest, AControlEdgeRidesOnAMessageWithValues) {  // unlike GP-11
  const Output a = join(ps0_, "a", {constant(ps0_, "c")}), later = join(ps0_, "later", {a});
  const Output b = join(worker_.with_control_dependencies({later.op()}), "b", {constant(worker_, "d")});
  const Output user = join(worker_, "user", {a});
  const RunSplit run = split({b, user});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("a", "later", "a:0 > 0.0")) << "it leaves after both";
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > a:0", "b", "user"));
}

TEST_F(RunSplitTest, AllVariablesOfATaskAreOneMessage) {
  std::vector<Output> read;
  for (const char* name : {"u", "v", "w"})
    read.push_back(identity(ps0_, std::string(name) + "/read", variable(ps0_, name)));
  const RunSplit run = split({join(worker_, "x", read)});
  EXPECT_EQ(run.bundles.size(), 1u);
  EXPECT_EQ(run.bundles[0].values, 3);
}

TEST_F(RunSplitTest, AMessageEndsWhereTheSenderWaits) {
  const Output a = join(ps0_, "a", {constant(ps0_, "c")});
  const Output b = join(worker_, "b", {a});
  const Output c = join(ps0_, "d", {a, b});
  const RunSplit run = split({join(worker_, "e", {c})});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("a", "a:0 > 0.0", "1.0 > b:0", "d", "d:0 > 2.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > a:0", "b", "b:0 > 1.0", "2.0 > d:0", "e"));
}

TEST_F(RunSplitTest, AMessageGoesOnWhereTheSenderTakesMoreOfWhatHasCome) {
  const Output a = join(ps0_, "a", {constant(ps0_, "c")}), b = join(ps0_, "b", {constant(ps0_, "d")});
  const Output from_a = join(worker_, "from_a", {a}), from_b = join(worker_, "from_b", {b, from_a});
  const RunSplit run = split({join(ps0_, "e", {from_a, from_b})});
  EXPECT_THAT(steps(run, on_worker_),
              ElementsAre("0.0 > a:0", "from_a", "from_a:0 > 1.0", "0.1 > b:0", "from_b", "from_b:0 > 1.1"));
}

TEST_F(RunSplitTest, AMessageEndsAtOneMebibyte) {
  std::vector<Fetch> sent;
  for (int i = 0; i < 5; ++i) {
    const Output v =
        ps0_.add("VariableV2", fmt::format("v{}", i), {}, {{"dtype", kFloat}, {"shape", Shape{100'000}}}).output();
    sent.push_back(identity(worker_, fmt::format("x{}", i),
                            root_
                                .add("ExpandDims", fmt::format("e{}", i),
                                     {v, root_
                                             .add("Const", fmt::format("dim{}", i), {},
                                                  {{"value", Tensor::scalar<int64_t>(0)}, {"dtype", kInt64}})
                                             .output()})
                                .output()));
  }
  const RunSplit run = split(sent);
  std::vector<int> values;
  for (const Bundle& bundle : run.bundles) values.push_back(bundle.values);
  EXPECT_THAT(values, ElementsAre(2, 2, 1)) << "400,000 bytes each";
}

TEST_F(RunSplitTest, WhatWritesNeedIsReceivedBeforeTheFirstOfThem) {
  const Output v = variable(ps0_, "v"), w = variable(ps0_, "w");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Output x = join(worker_, "x", {constant(worker_, "d")});
  const RunSplit run = split({set_v, assign(ps0_, "set_w", w, x)});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("0.0 > x:0", "set_v", "set_w"));
}

TEST_F(RunSplitTest, WhatWasWrittenIsSentAfterTheLastWrite) {
  const Output v = variable(ps0_, "v"), w = variable(ps0_, "w");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Output set_w = assign(ps0_, "set_w", w, constant(ps0_, "d"));
  const RunSplit run = split({join(worker_, "x", {set_v}), set_w});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("set_v", "set_w", "set_v:0 > 0.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > set_v:0", "x"));
}

TEST_F(RunSplitTest, WritesOfSeveralTasksFollowEachOtherWithoutAMessage) {
  const Output v = variable(ps0_, "v"), step = variable(ps1_, "step");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Operation updates = group(worker_, "updates", {set_v.op()});
  const Output count = assign(ps1_.with_control_dependencies({updates}), "count", step, constant(ps1_, "d"));
  const RunSplit run = split({group(worker_, "train", {count.op()})});
  EXPECT_TRUE(run.transfers.empty());
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("set_v"));
  EXPECT_THAT(steps(run, on_ps1_), ElementsAre("count"));
}

TEST_F(RunSplitTest, AConstantMadeAfterAWriteIsNoReasonToWait) {
  const Output v = variable(ps0_, "v"), w = variable(ps1_, "w");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Output late = constant(worker_.with_control_dependencies({set_v.op()}), "late");
  const RunSplit run = split({assign(ps1_, "set_w", w, late)});
  EXPECT_TRUE(run.transfers.empty());
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("set_v"));
  EXPECT_THAT(steps(run, on_ps1_), ElementsAre("set_w"));
}

// As a moving average after a step: it takes the variable of its own task as the step has left it.
TEST_F(RunSplitTest, AReadForAWriteFollowsAnotherTasksWriteWithoutAMessage) {
  const Output v = variable(ps0_, "v"), w = variable(ps1_, "w"), average = variable(ps1_, "average");
  const Output set_w = assign(ps1_, "set_w", w, constant(ps1_, "c"));
  const Output set_v = assign(ps0_.with_control_dependencies({set_w.op()}), "set_v", v, constant(ps0_, "d"));
  const Output read = join(ps1_.with_control_dependencies({set_v.op()}), "read", {w});
  const RunSplit run = split({assign(ps1_, "move", average, read)});
  EXPECT_TRUE(run.transfers.empty());
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("set_v"));
  EXPECT_THAT(steps(run, on_ps1_), ElementsAre("set_w", "read", "move"));
}

TEST_F(RunSplitTest, AWriteThatNeedsWhatAnotherTaskWroteIsRefused) {
  const Output v = variable(ps0_, "v"), w = variable(ps1_, "w");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Output set_w = assign(ps1_, "set_w", w, join(worker_, "x", {set_v}));
  EXPECT_THAT(
      refusal_of([&] { split({set_w}); }),
      "x (StringJoin) on /job:worker/replica:0/task:0 needs set_v (Assign) on /job:ps/replica:0/task:0, and this "
      "run changes variables before and after it: split it into two runs");
  EXPECT_EQ(steps(split({join(worker_, "y", {set_v})}), on_worker_).size(), 2u) << "alone it can be done";
}

TEST_F(RunSplitTest, AVariableThatTheRunWritesIsReadForOthersAfterIt) {
  const Output v = variable(ps0_, "v");
  const Output set_v = assign(ps0_, "set_v", v, constant(ps0_, "c"));
  const Output x = join(worker_.with_control_dependencies({set_v.op()}), "x", {v});
  const RunSplit run = split({x, join(worker_, "before", {v})});
  EXPECT_THAT(steps(run, on_ps0_), ElementsAre("v:0 > 0.0", "set_v", "v:0 > 1.0"));
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("0.0 > v:0", "before", "1.0 > v:0", "x"));
}

TEST_F(RunSplitTest, OnOneTaskTheOrderIsThatOfAPlan) {  // RZ-8
  const Output v = variable(root_, "v"), w = variable(root_, "w");
  const Output set_v = assign(root_, "set_v", v, constant(root_, "c"));
  const Output read = identity(root_.with_control_dependencies({set_v.op()}), "read", v);
  const Output set_w = assign(root_, "set_w", w, read);
  const Output first = join(root_, "first", {v});
  const RunSplit run = split({set_w, first});
  EXPECT_THAT(steps(run, on_worker_), ElementsAre("first", "set_v", "read", "set_w"));
}

}  // namespace
}  // namespace longhaul

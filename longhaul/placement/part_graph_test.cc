#include "longhaul/placement/part_graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/placement/placement_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PartGraphTest : public PlacementTest {
 protected:
  static std::vector<std::string> nodes(const RunPart& part) {
    std::vector<std::string> texts;
    for (const auto& node : part.graph.node()) {
      std::string inputs;
      for (const std::string& input : node.input()) inputs += (inputs.empty() ? "" : ", ") + input;
      texts.push_back(fmt::format("{} = {}({})", node.name(), node.op(), inputs));
    }
    return texts;
  }
  // The part as the task gets it.
  static void import(const RunPart& part, Graph& graph) {
    ImportOptions options{.is_part = true};
    for (const auto& [name, value] : part.constants) options.constants.emplace(name, value);
    import_graph_def(graph, part.graph, options);
  }

  const Scope ps_ = on("/job:ps/task:0"), worker_ = on("/job:worker/task:0");
};

TEST_F(PartGraphTest, EachTaskGetsItsNodesWithSendsAndReceives) {  // GP-10, unlike GP-16
  const Output v = variable(ps_, "v"), read = identity(ps_, "v/read", v);
  const Output x = root_.add("Placeholder", "x", {}, {{"dtype", kString}, {"shape", Shape()}}).output();
  const Output y = join(worker_, "y", {read, x});
  const Output set = assign(ps_, "set", v, y);
  const DividedRun run = divide({set, y, x, x}, {x});
  ASSERT_THAT(run.parts, SizeIs(2));
  const RunPart &ps = run.parts[0], &worker = run.parts[1];
  EXPECT_EQ(ps.task, "/job:ps/replica:0/task:0");
  EXPECT_THAT(nodes(ps), ElementsAre("v = VariableV2()", "v/read = Identity(v)", "v/read/_send_0 = _Send(v/read)",
                                     "y/_recv_1 = _Recv()", "set = Assign(v, y/_recv_1)"));
  EXPECT_THAT(nodes(worker), ElementsAre("v/read/_recv_0 = _Recv()", "x = Placeholder()",
                                         "y = StringJoin(v/read/_recv_0, x)", "y/_send_1 = _Send(y)"));
  EXPECT_THAT(ps.fetches, ElementsAre(RunPart::Named{0, "set:0"}));
  EXPECT_THAT(worker.fetches, ElementsAre(RunPart::Named{1, "y:0"}));
  EXPECT_THAT(worker.feeds, ElementsAre(RunPart::Named{0, "x:0"}));
  EXPECT_THAT(ps.feeds, IsEmpty());
  EXPECT_THAT(run.fetched_feeds, ElementsAre(std::pair(2, 0), std::pair(3, 0)));
  EXPECT_THAT(ps.targets, ElementsAre("v/read/_send_0", "set"));
  EXPECT_THAT(worker.targets, ElementsAre("y/_send_1"));
  EXPECT_THAT(ps.sends, ElementsAre(RunPart::Message{0, worker.task, 1}));
  EXPECT_THAT(worker.receives, ElementsAre(RunPart::Message{0, ps.task, 1}));
  EXPECT_TRUE(ps.writes && ps.run_writes && worker.run_writes);
  EXPECT_FALSE(worker.writes);
}

TEST_F(PartGraphTest, ATransferHasThePeerTheMessageAndTheSlot) {  // unlike RZ-2
  const Output a = join(ps_, "a", {constant(ps_, "c")}), b = join(ps_, "b", {a});
  const DividedRun run = divide({join(worker_, "x", {a, b})});
  Graph ps, worker;
  import(run.parts.at(0), ps);
  import(run.parts.at(1), worker);
  const Operation send = ps.operation("b/_send_1"), receive = worker.operation("b/_recv_1");
  EXPECT_EQ(send.attr<std::string>("peer"), run.parts[1].task);
  EXPECT_EQ(receive.attr<std::string>("peer"), run.parts[0].task);
  for (const Operation& op : {send, receive}) {
    EXPECT_EQ(op.attr<int64_t>("bundle"), 0);
    EXPECT_EQ(op.attr<int64_t>("slot"), 1);
    EXPECT_EQ(op.attr<DType>("T"), kString);
  }
  EXPECT_EQ(receive.output().dtype(), kString);
}

TEST_F(PartGraphTest, WhatFollowsAWriteOfAnotherTaskFollowsAWrite) {
  const Output v = variable(ps_, "v");
  const Output set = assign(ps_, "set", v, constant(ps_, "c"));
  const Output mine = variable(worker_, "mine");
  const Output read = identity(worker_.with_control_dependencies({set.op()}), "read", mine);
  const DividedRun run = divide({read, identity(worker_, "early", mine)});
  Graph worker;
  import(run.parts.at(1), worker);
  EXPECT_EQ(run.parts[1].targets.size(), 3u) << "both reads and the receive";
  const RunOrder order(request({"read", "early", "set/_recv_0"}, {}, worker));
  EXPECT_TRUE(order.depends_on_write(worker.operation("read")));
  EXPECT_FALSE(order.depends_on_write(worker.operation("early")));
  std::vector<std::string> names;
  for (const Operation& op : order.ordered()) names.push_back(op.name());
  EXPECT_THAT(names, ElementsAre("mine", "early", "set/_recv_0", "read"));
}

TEST_F(PartGraphTest, EachTaskReportsOnItsOwnVariables) {
  const Output a = variable(ps_, "a"), b = variable(on("/job:ps/task:1"), "b"), own = variable(worker_, "own");
  const Output c = variable(ps_, "c");
  const Output report = root_.add("ReportUninitializedVariables", "report", {a, b, own, c}).output();
  const DividedRun run = divide({report});
  ASSERT_THAT(run.parts, SizeIs(3));
  EXPECT_THAT(nodes(run.parts[0]),
              ElementsAre("a = VariableV2()", "c = VariableV2()", "report/_part_0 = ReportUninitializedVariables(a, c)",
                          "a/_send_0 = _Send(report/_part_0)"));
  EXPECT_THAT(nodes(run.parts[1]), ElementsAre("b = VariableV2()", "report/_part_1 = ReportUninitializedVariables(b)",
                                               "b/_send_1 = _Send(report/_part_1)"));
  EXPECT_THAT(nodes(run.parts[2]), ElementsAre("a/_recv_0 = _Recv()", "b/_recv_1 = _Recv()", "own = VariableV2()",
                                               "report/_part_2 = ReportUninitializedVariables(own)",
                                               "report = _JoinReports(a/_recv_0, b/_recv_1, report/_part_2)"));
  for (const RunPart& part : run.parts) {
    Graph graph;
    import(part, graph);
    EXPECT_FALSE(part.writes);
  }
}

TEST_F(PartGraphTest, AReportAfterAWriteIsMadeAfterIt) {
  const Output a = variable(ps_, "a"), own = variable(worker_, "own");
  const Output set = assign(ps_, "set", a, constant(ps_, "c"));
  const Output report =
      root_.with_control_dependencies({set.op()}).add("ReportUninitializedVariables", "report", {a, own}).output();
  const DividedRun run = divide({report});
  ASSERT_THAT(run.parts, SizeIs(2));
  const std::vector<std::string> of_ps = nodes(run.parts[0]);
  const auto written = std::find(of_ps.begin(), of_ps.end(), "set = Assign(a, c)");
  EXPECT_EQ(std::count(written, of_ps.end(), "report/_part_0 = ReportUninitializedVariables(a)"), 1);
}

TEST_F(PartGraphTest, LargeConstantsTravelBesideTheGraph) {
  const Tensor large(kFloat, Shape{20'000});
  const Output c = worker_.add("Const", "c", {}, {{"value", large}, {"dtype", kFloat}}).output();
  const DividedRun run = divide({identity(worker_, "x", c)});
  ASSERT_THAT(run.parts.at(0).constants, SizeIs(1));
  EXPECT_LT(run.parts[0].graph.ByteSizeLong(), 1000u);
  Graph graph;
  import(run.parts[0], graph);
  EXPECT_EQ(graph.operation("c").attr<Tensor>("value").data(), large.data()) << "not copied";
}

TEST_F(PartGraphTest, AFedResultIsNotComputed) {
  const Output a = join(ps_, "a", {constant(ps_, "c")}), b = join(worker_, "b", {a});
  const DividedRun run = divide({b}, {a});
  ASSERT_THAT(run.parts, SizeIs(1));
  EXPECT_THAT(nodes(run.parts[0]), ElementsAre("a/_fed_0 = Placeholder()", "b = StringJoin(a/_fed_0)"));
  EXPECT_THAT(run.parts[0].feeds, ElementsAre(RunPart::Named{0, "a/_fed_0:0"}));
}

TEST_F(PartGraphTest, TheStateOfARandomStreamIsFoundByName) {
  ps_.add("RandomShuffle", "shuffle", {constant(ps_, "c")}, {{"seed", int64_t{7}}});
  const Output state =
      root_.add("RandomState", "state", {}, {{"_class", std::vector<std::string>{"loc:@shuffle"}}}).output();
  const DividedRun run = divide({state});
  ASSERT_THAT(run.parts, SizeIs(1));
  EXPECT_EQ(run.parts[0].task, "/job:ps/replica:0/task:0");
  EXPECT_THAT(nodes(run.parts[0]), ElementsAre("state = RandomState()", "shuffle = NoOp()"));
}

TEST_F(PartGraphTest, NobodyImportsTransfersByAccident) {
  const Output a = join(ps_, "a", {constant(ps_, "c")});
  const DividedRun run = divide({join(worker_, "x", {a})});
  Graph graph;
  EXPECT_THAT(refusal_of([&] { import_graph_def(graph, run.parts.at(0).graph); }),
              HasSubstr("node a/_send_0 (_Send): only sessions make such operations"));
  EXPECT_EQ(graph.num_operations(), 0);
}

}  // namespace
}  // namespace longhaul

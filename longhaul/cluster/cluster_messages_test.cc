// What a run of several tasks sends, and to whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/ops/ops.h"

namespace longhaul {
namespace {

using ::testing::UnorderedElementsAre;

class ClusterMessages : public ::testing::Test {
 protected:
  using Sent = SimulatedNetwork::Sent;

  // From the `first` on: those that carry tensors, or belong to a step.
  std::vector<std::string> messages_from(size_t first) {
    std::vector<std::string> texts;
    const std::vector<Sent> sent = cluster_.network().sent();
    for (size_t i = first; i < sent.size(); ++i) {
      if (sent[i].tensors > 0 || is_of_step(sent[i].method)) texts.push_back(text_of(sent[i]));
    }
    return texts;
  }
  static bool is_of_step(const std::string& method) {
    return method == methods::kRunPart || method == methods::kDeliver || method == methods::kCommit;
  }
  static std::string text_of(const Sent& sent) {
    return fmt::format("{} {} > {}, {}: {}", sent.is_reply ? "reply to" : "call of", sent.from, sent.to, sent.method,
                       sent.tensors);
  }
  size_t tensors_from(size_t first) {
    const std::vector<Sent> sent = cluster_.network().sent();
    size_t count = 0;
    for (size_t i = first; i < sent.size(); ++i) count += sent[i].tensors;
    return count;
  }
  size_t calls_to(const std::string& task) { return cluster_.network().calls(kWorker, task); }
  size_t calls_from(const std::string& task) { return cluster_.network().calls(task, kWorker); }

  TrainingCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

// The client is the program with the session: it calls the tasks that take part, and no others.
TEST_F(ClusterMessages, FeedsGoWithTheCallToTheirTaskAndFetchesComeWithItsAnswer) {  // unlike GP-18
  Graph graph;
  const Scope root(graph), on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  const Output x = ops::placeholder(root, kFloat, {}, "x"), y = ops::placeholder(root, kFloat, {}, "y");
  const Output doubled = ops::add(on1, x, x), sum = ops::add(on0, doubled, y);
  const std::string client = kWorker1;
  const auto session = cluster_.session(graph, {}, client);
  const Feeds feeds{{x, Tensor::scalar(3.f)}, {y, Tensor::scalar(1.f)}};
  session->run({doubled, sum}, feeds);
  const size_t first = cluster_.network().sent().size();
  const std::vector<Tensor> values = session->run({doubled, sum}, feeds);
  EXPECT_EQ(values.at(0).item<float>(), 6);
  EXPECT_EQ(values.at(1).item<float>(), 7);
  const auto line = [](const char* what, const std::string& from, const std::string& to, const char* method, int n) {
    return fmt::format("{} {} > {}, {}: {}", what, from, to, method, n);
  };
  EXPECT_THAT(messages_from(first), UnorderedElementsAre(line("call of", client, kPs, methods::kRunPart, 1),
                                                         line("call of", client, kPs1, methods::kRunPart, 1),
                                                         line("call of", kPs1, kPs, methods::kDeliver, 1),
                                                         line("reply to", kPs, kPs1, methods::kDeliver, 0),
                                                         line("reply to", kPs1, client, methods::kRunPart, 1),
                                                         line("reply to", kPs, client, methods::kRunPart, 1)));
  EXPECT_EQ(cluster_.network().calls(client, kWorker), 0u);
}

// Trained on worker 0, on one or two ps tasks by turns. As in a network, all variables are read before the first
// gradient is known.
struct ManyVariables {
  explicit ManyVariables(int count, int servers = 2) {
    Output loss = ops::constant(root, 0.f);
    for (int i = 0; i < count; ++i) {
      const Scope at = root.with_device(fmt::format("/job:ps/task:{}", i % servers));
      const Variable w = ops::variable(at, fmt::format("w{}", i), Tensor::of<float>({1, 2, 3}));
      if (i == 0) step = ops::create_global_step(at);
      last = w;
      loss = ops::add(root, loss, ops::mean(root, ops::square(root, w)));
    }
    train = GradientDescentOptimizer(0.5 / count).minimize(ops::square(root, loss), step);
    init = ops::global_variables_initializer(root);
  }

  Graph graph;
  Scope root{graph};
  Variable step, last;
  Operation train, init;
};

TEST_F(ClusterMessages, AStepTakesThreeCallsToEachPsHoweverManyVariablesThereAre) {
  for (const int count : {2, 60}) {
    const ManyVariables model(count);
    const auto session = cluster_.session(model.root.graph(), {.isolate_session_state = true});
    session->run(model.init);
    session->run(model.train);
    const size_t before = calls_to(kPs), before1 = calls_to(kPs1), first = cluster_.network().sent().size();
    const size_t answered = calls_from(kPs), answered1 = calls_from(kPs1);
    session->run(model.train);
    EXPECT_LE(calls_from(kPs) - answered, 1u) << count;  // Deliver: its variables
    EXPECT_LE(calls_from(kPs1) - answered1, 1u) << count;
    EXPECT_LE(calls_to(kPs) - before, 3u) << count;  // RunPart, Deliver, Commit
    EXPECT_LE(calls_to(kPs1) - before1, 3u) << count;
    EXPECT_GE(calls_to(kPs1) - before1, 2u) << count;
    EXPECT_GE(tensors_from(first), 2 * static_cast<size_t>(count)) << "each variable and its gradient travels";
    EXPECT_NE(session->run(model.last).flat<float>()[0], 1);
    session->close();
  }
}

// One task commits without a Commit.
TEST_F(ClusterMessages, AStepTakesThreeCallsInAllWithOnePs) {
  for (const int count : {2, 60}) {
    const ManyVariables model(count, /*servers=*/1);
    const auto session = cluster_.session(model.root.graph(), {.isolate_session_state = true});
    session->run(model.init);
    session->run(model.train);
    const size_t before = calls_to(kPs) + calls_from(kPs);
    session->run(model.train);
    EXPECT_LE(calls_to(kPs) + calls_from(kPs) - before, 3u) << count;  // RunPart, Deliver both ways
    session->close();
  }
}

}  // namespace
}  // namespace longhaul

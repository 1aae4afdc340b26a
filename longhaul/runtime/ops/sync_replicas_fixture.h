#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/log.h"
#include "longhaul/host/accumulators/accumulator.h"
#include "longhaul/host/accumulators/worker_gradients.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"

namespace longhaul {

template <typename Condition>
void wait_until(Condition&& condition) {
  const Seconds deadline = Clock::real().now() + Seconds{20};
  while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(condition());
}

// One replica: a graph with the variables v0, v1 and the table rows, gradients that are its own, and a session on the
// server that all replicas share.
struct SyncReplica {
  SyncReplica(int index, int aggregate, SyncReplicasOptions options, std::shared_ptr<TaskResources> server)
      : optimizer(descent, aggregate, of_worker(index, std::move(options))),
        step(ops::create_global_step(root)),
        v0(ops::variable(root, "v0", Tensor::scalar(0.f))),
        v1(ops::variable(root, "v1", Tensor::scalar(1.f))),
        rows(ops::variable(root, "rows", Tensor::of<float>(Shape{2, 1}, {3, 4}))) {
    const auto by = static_cast<float>(index) * 0.2f;
    const Output row = ops::indexed_slices(root, ops::constant(root, Tensor::of<float>(Shape{1, 1}, {0.1f + by})),
                                           ops::constant(root, Tensor::of<int64_t>({1})), 2);
    train = optimizer.apply_gradients(
        root, {{ops::constant(root, 0.1f + by), v0}, {ops::constant(root, 0.9f + by), v1}, {row, rows}}, step);
    init = ops::global_variables_initializer(root);
    session = std::make_shared<DirectSession>(graph, SessionOptions{}, std::move(server));
  }

  float value(const Variable& variable) const { return session->run(variable).item<float>(); }
  int64_t step_now() const { return session->run(step).item<int64_t>(); }
  int64_t local_step() const { return session->run(optimizer.local_step()).item<int64_t>(); }
  void run() const { session->run(train); }
  std::future<void> run_in_background() const {
    return std::async(std::launch::async, [this] { run(); });
  }

  static SyncReplicasOptions of_worker(int index, SyncReplicasOptions options) {
    options.worker = "worker" + std::to_string(index);
    return options;
  }

  Graph graph;
  Scope root{graph};
  GradientDescentOptimizer descent{2.0};
  SyncReplicasOptimizer optimizer;
  Variable step, v0, v1, rows;
  Operation train, init;
  std::shared_ptr<DirectSession> session;
};

// Replicas of one server; the first is the chief.
class SyncReplicasTest : public ::testing::Test {
 protected:
  ~SyncReplicasTest() override { stop(); }

  void make(int count, int aggregate, int total = 0) {
    make_with(count, aggregate, {.total_num_replicas = total == 0 ? count : total});
  }
  void make_with(int count, int aggregate, const SyncReplicasOptions& options) {
    for (int i = 0; i < count; ++i) replicas_.push_back(std::make_unique<SyncReplica>(i, aggregate, options, server_));
  }
  // As each replica's session starts: the chief's first.
  void start(int num_tokens = -1) {
    chief().session->run(chief().init);
    for (size_t i = 0; i < replicas_.size(); ++i) start_one(i, num_tokens);
  }
  void start_one(size_t i, int num_tokens = -1) {
    SyncReplicasHook hook(at(i).optimizer, /*is_chief=*/i == 0, num_tokens);
    hook.begin(at(i).graph);
    hook.after_create_session(*at(i).session, coord_);
  }
  // The chief's thread ends, and with it its waits.
  void stop() {
    coord_.request_stop();
    EXPECT_NO_THROW(coord_.join());
    for (const auto& replica : replicas_) replica->session->close();
  }

  SyncReplica& at(size_t i) const { return *replicas_[i]; }
  SyncReplica& chief() const { return *replicas_[0]; }
  void wait_for_step(int64_t step) const {
    wait_until([&] { return chief().step_now() >= step; });
    EXPECT_EQ(chief().step_now(), step);
  }
  Queue& tokens() const {
    return dynamic_cast<Queue&>(
        *resource_of(chief().optimizer.sync_token_queue().handle().op(), server_->host_resources()));
  }
  WorkerGradients::Counts counts_of(const std::string& worker) const {
    return worker_gradients(server_->host_resources())->of(worker);
  }

  const std::shared_ptr<TaskResources> server_ = std::make_shared<TaskResources>();
  std::vector<std::unique_ptr<SyncReplica>> replicas_;
  Coordinator coord_;
};

}  // namespace longhaul

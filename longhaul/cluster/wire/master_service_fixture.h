#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "longhaul/cluster/wire/master_service.h"
#include "longhaul/cluster/wire/wire_fixture.h"
#include "longhaul/cluster/worker/shared_task_fixture.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/scope.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {

// A MasterService whose sessions run in this process, on a task that they share.
class MasterServiceTest : public ::testing::Test {
 protected:
  ~MasterServiceTest() override {
    if (service_ != nullptr) {
      EXPECT_TRUE(service_->stop("the test ends", Seconds{60}));
    }
  }

  MasterServiceOptions options() {
    MasterServiceOptions options;
    options.new_session = [task = task_](Graph& graph, const SessionOptions& session) {
      return task->new_session(graph, session);
    };
    options.own_devices = [task = task_] { return task->devices(); };
    options.list_devices = [task = task_] {
      std::vector<DeviceAttributes> devices = task->devices();
      devices.push_back({.name = "/job:ps/replica:0/task:1/device:CPU:0", .device_type = "CPU", .incarnation = 7});
      return devices;
    };
    options.reset = [task = task_](const std::vector<std::string>& containers) { task->reset(containers); };
    return options;
  }
  WireClient client() { return client(options()); }
  WireClient client(MasterServiceOptions options) {
    service_ = std::make_unique<MasterService>(std::move(options));
    return WireClient(*service_);
  }

  // A graph with a queue of floats, into which "value:0" is put.
  struct QueueGraph {
    Graph graph;
    Scope root{graph};
    FIFOQueue queue{root, 2, {kFloat}, {.shapes = {Shape{}}}};
    Output value = root.add("Placeholder", "value", {}, {{"dtype", kFloat}, {"shape", Shape{}}}).output();
    std::string enqueue = queue.enqueue(root, {value}).name();  // an operation
    std::string dequeue = queue.dequeue(root)[0].name();        // a tensor
    proto::GraphDef graph_def = to_graph_def(graph);
  };
  // Whether that many runs wait in the queue, within a minute.
  bool await_waiting(const QueueGraph& in, size_t runs) {
    return await([&] { return task_->waiting_in(in.queue.handle().op()) == runs; });
  }
  // Whether it comes true within a minute.
  static bool await(const std::function<bool()>& is_so) {
    const Seconds end = Clock::real().now() + Seconds{60};
    while (!is_so() && Clock::real().now() < end) std::this_thread::yield();
    return is_so();
  }

  const ThreadsEnd threads_end_;
  const std::shared_ptr<const SharedTask> task_ = std::make_shared<SharedTask>();
  std::unique_ptr<MasterService> service_;
};

}  // namespace longhaul

// What does a cluster cost? A step whose variables are on one or two parameter servers beside the step in one process
// and the time that its bytes need on the wire; a run that does nothing beside a call; the transfer of large values
// beside plain TCP; many tasks at once. Tasks talk over loopback; all but one row has them in this process.
#include <fmt/format.h>

#include <memory>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "benchmarks/cluster_model.h"
#include "benchmarks/cluster_servers.h"
#include "benchmarks/loopback.h"
#include "longhaul/cluster/transport/call_and_wait.h"
#include "longhaul/grpc/transport/grpc_transport.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace longhaul::bench {
namespace {

constexpr int kStepsOfARun = 200;
constexpr size_t kLargeTransfer = size_t{64} << 20;
// The weights of 784-256-128-10 travel to the worker, and gradients of the same size back.
constexpr double kBytesOfAStep = 2.0 * 4 * (784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);

// Milliseconds of a step of the example's network.
double step_milliseconds(int ps_tasks) {
  const TrainingServers servers(ps_tasks);
  Graph graph;
  const auto net = build_cluster_classifier(graph, servers.cluster(), 0);
  const Operation init = ops::global_variables_initializer(Scope(graph));
  const auto session = new_session(servers.master(), graph);
  session->run(init);
  const Callable step = session->make_callable(net.train_op, {net.images, net.labels});
  const auto [images, labels] = classifier_batch();
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) step(images, labels);
  };
  run(kStepsOfARun / 10);
  return 1000 * time_seconds([&] { run(kStepsOfARun); }) / kStepsOfARun;
}

Row step_row(int ps_tasks, double goal) {
  return {.name = fmt::format("cluster/step_{}_ps", ps_tasks),
          .what = fmt::format("a step of 784-256-128-10 with {} ps, compared with one process and its bytes over TCP",
                              ps_tasks),
          .unit = "ms",
          .goal = goal,
          .bound = Bound::kAtMostMore,
          .sample = [ps_tasks] {
            const double seconds_per_byte = tcp_seconds(kLargeTransfer) / static_cast<double>(kLargeTransfer);
            return Pair{step_milliseconds(ps_tasks), step_milliseconds(0) + 1000 * kBytesOfAStep * seconds_per_byte};
          }};
}

// GB/s of a variable that is fetched from another task.
double fetched_gigabytes_per_second() {
  const TrainingServers servers(1);
  Graph graph;
  const Scope there = Scope(graph).with_device("/job:ps/task:0");
  const Variable large =
      ops::variable(there, "large", ops::zeros(there, {static_cast<int64_t>(kLargeTransfer / sizeof(float))}));
  const auto session = new_session(servers.master(), graph);
  session->run(large.initializer());
  const Callable fetch = session->make_callable(std::vector<Fetch>{large});
  fetch();
  constexpr int kTimes = 4;
  const double seconds = time_seconds([&] {
    for (int i = 0; i < kTimes; ++i) fetch();
  });
  return kTimes * static_cast<double>(kLargeTransfer) / seconds / 1e9;
}

double servers_milliseconds(int count) {
  std::vector<std::unique_ptr<Server>> servers;
  return 1000 * time_seconds([&] {
           for (int i = 0; i < count; ++i) servers.push_back(Server::create_local_server());
         });
}

// Microseconds of a run that does nothing, of a session on this server; "": of this process.
double noop_microseconds(const std::string& master, int runs) {
  Graph graph;
  const Operation noop = ops::no_op(Scope(graph));
  const auto session = new_session(master, graph);
  const Callable run = session->make_callable(noop);
  const auto make = [&](int times) {
    for (int i = 0; i < times; ++i) run();
  };
  make(runs / 10);
  return 1e6 * time_seconds([&] { make(runs); }) / runs;
}

Pair sample_noop_of_this_process() {
  constexpr int kRuns = 20000;
  const auto server = Server::create_local_server();
  return {noop_microseconds(server->target(), kRuns), noop_microseconds("", kRuns)};
}

// Microseconds of a unary call of gRPC without a message, between two ends in this process.
double call_microseconds(int calls) {
  const std::string callee = "/job:ps/replica:0/task:0";
  const auto there = GrpcTransport::create({.task = callee, .listen = "127.0.0.1:0"});
  there->serve("Nothing", [](const std::shared_ptr<IncomingCall>& call) { call->reply({}); });
  there->begin();
  const auto here = GrpcTransport::create(
      {.task = "/job:worker/replica:0/task:0", .addresses = {{callee, fmt::format("127.0.0.1:{}", there->port())}}});
  const auto make = [&](int times) {
    for (int i = 0; i < times; ++i) call_and_wait(*here, {.task = callee, .method = "Nothing"});
  };
  make(calls / 10);
  return 1e6 * time_seconds([&] { make(calls); }) / calls;
}

// Microseconds of a run that reads one number there. A run that does nothing would be no call: operations without an
// effect are left out when the run is split.
double read_microseconds(const std::string& master, int runs) {
  Graph graph;
  const Variable number = ops::variable(Scope(graph).with_device("/job:ps/task:0"), "number", Tensor::scalar(1.f));
  const auto session = new_session(master, graph);
  session->run(number.initializer());
  const Callable read = session->make_callable(std::vector<Fetch>{number});
  const auto make = [&](int times) {
    for (int i = 0; i < times; ++i) read();
  };
  make(runs / 10);
  return 1e6 * time_seconds([&] { make(runs); }) / runs;
}

Pair sample_read_of_another_process() {
  constexpr int kRuns = 2000;
  const ClusterAddresses at = free_cluster(1, 1);
  Child ps(probe_command("ps", 0, at));
  ps.read_until("serving");
  return {read_microseconds("grpc://" + at.ps[0], kRuns), call_microseconds(kRuns)};
}

// Milliseconds from the making of a session on so many tasks to the end of its first run, which reads a number on each
// of them. Another session has initialised these.
double first_run_milliseconds(int tasks) {
  const TrainingServers servers(tasks - 1);
  Graph graph;
  const Scope root(graph);
  std::vector<Fetch> numbers;
  for (int i = 0; i < tasks; ++i) {
    const std::string device = i == 0 ? "/job:worker/task:0" : fmt::format("/job:ps/task:{}", i - 1);
    numbers.push_back(ops::variable(root.with_device(device), fmt::format("number{}", i), Tensor::scalar(1.f)));
  }
  const Operation init = ops::global_variables_initializer(root);
  new_session(servers.master(), graph)->run(init);
  std::unique_ptr<Session> session;
  return 1000 * time_seconds([&] {
           session = new_session(servers.master(), graph);
           session->run(numbers);
         });
}

}  // namespace

void add_cluster_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "cluster/noop_grpc",
                  .what = "a run without parts, by a grpc:// target in this process, compared with no server",
                  .unit = "us",
                  .goal = 5,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_noop_of_this_process,
                  .goal_ours = 5});
  rows.push_back({.name = "cluster/read_other_process",
                  .what = "a run that reads a number of another process, compared with an empty call by our transport",
                  .unit = "us",
                  .goal = 1.4,
                  .bound = Bound::kAtMost,
                  .sample = sample_read_of_another_process});
  rows.push_back(step_row(1, 0.35));
  rows.push_back(step_row(2, 0.5));
  rows.push_back({.name = "cluster/fetch_64_MiB",
                  .what = "64 MiB from another task, compared with TCP",
                  .unit = "GB/s",
                  .goal = 0.65,
                  .sample = [] {
                    const double tcp = static_cast<double>(kLargeTransfer) / tcp_seconds(kLargeTransfer) / 1e9;
                    return Pair{fetched_gigabytes_per_second(), tcp};
                  }});
  rows.push_back({.name = "cluster/64_servers",
                  .what = "64 servers in one process until they listen, compared with 50 ms",
                  .unit = "ms",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] { return Pair{servers_milliseconds(64), 50}; }});
  rows.push_back({.name = "cluster/session_64_tasks",
                  .what = "from a new session on 64 tasks until its first run has ended, compared with 200 ms",
                  .unit = "ms",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] { return Pair{first_run_milliseconds(64), 200}; }});
}

}  // namespace longhaul::bench

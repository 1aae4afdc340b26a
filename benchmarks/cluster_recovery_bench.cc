// How long does a cluster take to notice that a task was killed, and to train again once it is back? The tasks that are
// killed are processes of their own (cluster_task_probe.cc).
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "benchmarks/cluster_model.h"
#include "benchmarks/cluster_servers.h"
#include "benchmarks/disk_limit.h"
#include "longhaul/grpc/tcp_proxy_fixture.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

std::unique_ptr<Child> started_probe(const std::string& job, int index, const ClusterAddresses& at,
                                     const std::string& text) {
  auto task = std::make_unique<Child>(probe_command(job, index, at));
  task->read_until(text);
  return task;
}

double empty_process_seconds() {
  return time_seconds([] { Child({EMPTY_TORCH_PROGRAM}).read_until(""); });
}

// When a run throws; one step after another is made until then.
Seconds time_of_loss(const std::function<void()>& step) {
  constexpr Seconds kLongest{20};
  const Seconds end = Clock::real().now() + kLongest;
  try {
    while (Clock::real().now() < end) step();
  } catch (const Error&) {
    return Clock::real().now();
  }
  throw std::runtime_error(fmt::format("no step has failed in {} s, though the ps is away", kLongest.count()));
}

double kill_noticed_seconds() {
  const ClusterAddresses at = free_cluster(1, 1);
  const auto ps = started_probe("ps", 0, at, "serving");
  const auto worker = serve_task(at, "worker", 0);
  Graph graph;
  const auto net = build_cluster_classifier(graph, at.spec(), 0);
  const Operation init = ops::global_variables_initializer(Scope(graph));
  const auto session = new_session(worker->target(), graph);
  session->run(init);
  const Callable step = session->make_callable(net.train_op, {net.images, net.labels});
  const auto [images, labels] = classifier_batch();
  for (int i = 0; i < 100; ++i) step(images, labels);
  Seconds killed{0}, thrown{0};
  {
    const std::jthread killer([&] {
      killed = Clock::real().now();
      ps->end();
    });
    thrown = time_of_loss([&] { step(images, labels); });
  }
  return (thrown - killed).count();
}

// The ps is reached by a line that is cut, without a word to either end. The limits are the default ones.
double cut_noticed_seconds() {
  ClusterAddresses at = free_cluster(1, 1);
  const std::string listens = at.ps[0];
  TcpProxy line(std::stoi(listens.substr(listens.rfind(':') + 1)));
  at.ps[0] = fmt::format("127.0.0.1:{}", line.port());
  const Server ps(at.spec(), {.job_name = "ps", .task_index = 0, .listen = listens});
  const auto worker = serve_task(at, "worker", 0);
  Graph graph;
  const Scope there = Scope(graph).with_device("/job:ps/task:0");
  const Variable count = ops::variable(there, "count", Tensor::scalar(0.f));
  const Operation add = ops::assign_add(there, count, ops::constant(there, 1.f)).op();
  const auto session = new_session(worker->target(), graph);
  session->run(count.initializer());
  const Callable step = session->make_callable(add);
  for (int i = 0; i < 100; ++i) step();
  Seconds cut{0}, thrown{0};
  {
    const std::jthread cutter([&] {
      cut = Clock::real().now();
      line.cut(true, true);
    });
    thrown = time_of_loss([&] { step(); });
  }
  line.mend();  // so that both servers end without a wait
  return (thrown - cut).count();
}

// From the start of a worker that was killed to the end of its first step.
Pair sample_worker_back() {
  const ClusterAddresses at = free_cluster(2, 1);
  const auto ps = serve_task(at, "ps", 0), chief = serve_task(at, "worker", 0);
  Graph graph;
  build_cluster_classifier(graph, at.spec(), 0);
  const Operation init = ops::global_variables_initializer(Scope(graph));
  const auto session = new_session(chief->target(), graph, {.device_filters = {"/job:ps", "/job:worker/task:0"}});
  session->run(init);
  started_probe("worker", 1, at, "stepped")->end();
  std::unique_ptr<Child> again;  // ends after the measurement
  const double back = time_seconds([&] { again = started_probe("worker", 1, at, "stepped"); });
  again.reset();
  return {back, empty_process_seconds()};
}

// A chief in this process whose model of 1 GiB is on a ps in another one, which it kills and starts again.
class LostPs {
 public:
  LostPs() {
    constexpr int kVariables = 32;
    constexpr int64_t kBytes = int64_t{1} << 30;
    const Scope there = Scope(graph_).with_device("/job:ps/task:0");
    for (int i = 0; i < kVariables; ++i) {
      ops::variable(there, fmt::format("v{:02}", i),
                    ops::uniform(there, {kBytes / kVariables / static_cast<int64_t>(sizeof(float))}, -1, 1));
    }
    step_ = ops::create_global_step(there);
    train_ = ops::assign_add(there, step_, ops::constant(there, int64_t{1})).op();
  }
  LostPs(const LostPs&) = delete;
  LostPs& operator=(const LostPs&) = delete;

  // From the start of the new ps to the end of the chief's next step.
  double seconds_to_next_step() {
    Supervisor sv({.graph = &graph_,
                   .logdir = logdir(),
                   .save_summaries_secs = Seconds{0},
                   .save_model_secs = Seconds{0},  // but for the one that is restored
                   .services = {.save_at_end = false}});
    const auto body = [&](Session& session) {
      if (started_ == Seconds{0}) lose_ps(sv, session);
      step_again(sv, session);
    };
    basic_train_loop(sv, body,
                     {.session = {.master = chief_->target(), .max_wait_secs = Seconds{60}},
                      .restart = {.backoff = Seconds{0.1}, .max_backoff = Seconds{0.1}}});
    if (sv.restored_from().empty()) throw std::runtime_error("the model of the ps was not restored");
    return (stepped_ - started_).count();
  }

  double read_seconds() const { return direct_read_seconds(logdir(), "model.ckpt"); }

 private:
  std::string logdir() const { return directory_.path() + "/run"; }

  [[noreturn]] void lose_ps(Supervisor& sv, Session& session) {
    session.run(train_);
    sv.saver()->save(session, sv.save_path(), step_);
    ps_->end();
    try {
      session.run(train_);
    } catch (const Error&) {
      started_ = Clock::real().now();
      ps_ = std::make_unique<Child>(probe_command("ps", 0, at_));
      throw;
    }
    throw std::runtime_error("a step has succeeded, though the ps was killed");
  }

  void step_again(Supervisor& sv, Session& session) {
    session.run(train_);
    stepped_ = Clock::real().now();
    sv.request_stop();
  }

  const testing::TemporaryDirectory directory_;
  const ClusterAddresses at_ = free_cluster(1, 1);
  std::unique_ptr<Child> ps_ = started_probe("ps", 0, at_, "serving");
  const std::unique_ptr<Server> chief_ = serve_task(at_, "worker", 0);
  Graph graph_;
  Variable step_;
  Operation train_;
  Seconds started_{0}, stepped_{0};
};

Pair sample_ps_back() {
  LostPs lost;
  const double back = lost.seconds_to_next_step();
  return {back, empty_process_seconds() + lost.read_seconds()};
}

}  // namespace

void add_cluster_recovery_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "cluster/kill_noticed",
                  .what = "from kill -9 of a ps until the worker's run throws, compared with 0.2 s",
                  .unit = "s",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] { return Pair{kill_noticed_seconds(), 0.2}; },
                  .samples = 9});
  rows.push_back({.name = "cluster/cut_noticed",
                  .what = "from the cut of the line to a ps until the worker's run throws, compared with 3.5 s",
                  .unit = "s",
                  .goal = 1,
                  .bound = Bound::kAtMost,
                  .sample = [] { return Pair{cut_noticed_seconds(), 3.5}; },
                  .samples = 5});
  rows.push_back({.name = "cluster/worker_back",
                  .what = "from a worker's start after its kill to its first step, compared with an empty program with "
                          "libtorch",
                  .unit = "s",
                  .goal = 0.4,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_worker_back,
                  .samples = 9,
                  .goal_ours = 0.8});
  rows.push_back({.name = "cluster/ps_back_1_GiB",
                  .what = "from a ps's start after its kill to the chief's next step, 1 GiB restored, compared with an "
                          "empty program and a direct read of the checkpoint",
                  .unit = "s",
                  .goal = 0.4,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_ps_back,
                  .goal_ours = 1.5});
}

}  // namespace longhaul::bench

// What does a cluster cost? A step whose variables are on one or two parameter servers beside the step in one process
// and the time that its bytes need on the wire; the transfer of large values beside plain TCP; many servers at once.
// The servers are in this process, and talk over loopback.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "examples/classifier.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kClusterBatch = 64;
constexpr int kStepsOfARun = 200;
constexpr size_t kLargeTransfer = size_t{64} << 20;
// The weights of 784-256-128-10 travel to the worker, and gradients of the same size back.
constexpr double kBytesOfAStep = 2.0 * 4 * (784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);

// A socket on loopback, bound to a port that the system chooses.
class BoundSocket {
 public:
  BoundSocket() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    if (::bind(descriptor_, pointer(), size) != 0 || ::getsockname(descriptor_, pointer(), &size) != 0) {
      throw UnavailableError("no port on 127.0.0.1");
    }
  }
  ~BoundSocket() { ::close(descriptor_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int descriptor() const { return descriptor_; }
  sockaddr* pointer() { return reinterpret_cast<sockaddr*>(&address_); }
  std::string text() const { return fmt::format("127.0.0.1:{}", ntohs(address_.sin_port)); }

 private:
  const int descriptor_;
  sockaddr_in address_{};
};

// Addresses of 127.0.0.1 at which nobody listens, all different.
std::vector<std::string> free_addresses_for(int tasks) {
  std::vector<std::unique_ptr<BoundSocket>> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < tasks; ++i) {
    sockets.push_back(std::make_unique<BoundSocket>());
    addresses.push_back(sockets.back()->text());
  }
  return addresses;
}

// Seconds for so many bytes over a TCP connection of this machine.
double tcp_seconds(size_t bytes) {
  BoundSocket listening;
  ::listen(listening.descriptor(), 1);
  std::vector<char> sent(bytes, 'x'), received(1 << 20);
  return time_seconds([&] {
    std::thread sender([&] {
      const int out = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(out, listening.pointer(), sizeof(sockaddr_in)) == 0) {
        for (size_t done = 0; done < bytes;) {
          const ssize_t written = ::send(out, sent.data() + done, bytes - done, MSG_NOSIGNAL);
          if (written <= 0) break;
          done += static_cast<size_t>(written);
        }
      }
      ::close(out);
    });
    const int in = ::accept(listening.descriptor(), nullptr, nullptr);
    while (::recv(in, received.data(), received.size(), 0) > 0) {
    }
    ::close(in);
    sender.join();
  });
}

// A worker and its parameter servers; none of these: the worker alone, without a server.
class TrainingServers {
 public:
  explicit TrainingServers(int ps_tasks) {
    if (ps_tasks == 0) return;
    const std::vector<std::string> at = free_addresses_for(ps_tasks + 1);
    cluster_ = ClusterSpec({{"worker", JobTasks{at[0]}}, {"ps", JobTasks(std::vector(at.begin() + 1, at.end()))}});
    for (int i = 0; i < ps_tasks; ++i) add("ps", i);
    add("worker", 0);
  }

  const ClusterSpec& cluster() const { return cluster_; }
  std::string master() const { return servers_.empty() ? "" : servers_.back()->target(); }

 private:
  void add(const std::string& job, int index) {
    servers_.push_back(std::make_unique<Server>(cluster_, ServerOptions{.job_name = job, .task_index = index}));
  }

  ClusterSpec cluster_;
  std::vector<std::unique_ptr<Server>> servers_;  // the worker's last
};

// Milliseconds of a step of the example's network.
double step_milliseconds(int ps_tasks) {
  const TrainingServers servers(ps_tasks);
  Graph graph;
  graph.set_seed(1);
  const Scope root = Scope(graph).with_device(
      replica_device_setter({.worker_device = "/job:worker/task:0", .cluster = servers.cluster()}));
  const auto net = examples::build_classifier(root, {.optimizer = "sgd"});
  const Operation init = ops::global_variables_initializer(Scope(graph));
  const auto session = new_session(servers.master(), graph);
  session->run(init);
  const Callable step = session->make_callable(net.train_op, {net.images, net.labels});
  Tensor images(kFloat, {kClusterBatch, 784}), labels(kInt64, {kClusterBatch});
  std::ranges::fill(images.mutable_flat<float>(), 0.5f);
  std::ranges::fill(labels.mutable_flat<int64_t>(), 3);
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

}  // namespace

void add_cluster_rows(std::vector<Row>& rows) {
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
}

}  // namespace longhaul::bench

#include "longhaul/cluster/server/server_cluster_fixture.h"

#include <utility>

namespace longhaul {

ServerClusterTest::ServerClusterTest() {
  install_runtime();
  previous_sink_ = set_log_sink([this](LogLevel, const std::string& text) {
    MutexLock lock(mutex_);
    logged_.push_back(text);
  });
  // A process that was killed ends its threads, as the system would.
  network_.on_killed([this](const std::string& task) {
    if (const auto server = find(task)) server->stop("its process was killed", Seconds{0});
  });
  for (const std::string& task : {kPs, kPs1, kWorker}) start(task);
}

ServerClusterTest::~ServerClusterTest() {
  for (const auto& server : all()) EXPECT_TRUE(server->stop("the test ends", Seconds{60}));
  set_log_sink(previous_sink_);
}

ClusterSpec ServerClusterTest::cluster() {
  return ClusterSpec({{"ps", {"10.0.0.1:2222", "10.0.0.2:2222"}}, {"worker", {"10.0.0.3:2222"}}});
}

TaskServer& ServerClusterTest::start(const std::string& task, const SessionOptions& config) {
  return start(task, config, cluster());
}

TaskServer& ServerClusterTest::start(const std::string& task, const SessionOptions& config,
                                     const ClusterSpec& cluster) {
  TaskServerOptions options{.cluster = cluster, .config = config_proto_of(config), .max_wait = Seconds{60}};
  options.worker.threads.around = [this](JobThreads::Job job) { return clock().around(std::move(job)); };
  auto server = std::make_shared<TaskServer>(network_.start(task), options);
  MutexLock lock(mutex_);
  living_[task] = server;
  all_.push_back(server);
  return *server;
}

void ServerClusterTest::kill(const std::string& task) {
  network_.kill(task);
  clock().settle();  // before another process of the task begins
}

ServerClusterTest::Beside ServerClusterTest::beside(const std::function<void()>& body) {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  const auto job = clock().around([body, is_over] {
    body();
    *is_over = true;
  });
  return {std::async(std::launch::async, job), is_over};
}

void ServerClusterTest::finish(Beside& beside) {
  ASSERT_TRUE(passes([&] { return beside.is_over->load(); }, Seconds{60}));
  beside.thread.get();
}

bool ServerClusterTest::nothing_is_left() {
  return passes(
      [this] {
        for (const auto& server : all()) {
          const Worker::Counts counts = server->counts();
          if (counts.sessions + counts.steps + counts.jobs != 0 || counts.gate_is_shut) return false;
        }
        return true;
      },
      Seconds{60});
}

std::vector<std::string> ServerClusterTest::logged() {
  MutexLock lock(mutex_);
  return logged_;
}

std::shared_ptr<TaskServer> ServerClusterTest::find(const std::string& task) {
  MutexLock lock(mutex_);
  const auto found = living_.find(task);
  return found == living_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<TaskServer>> ServerClusterTest::all() {
  MutexLock lock(mutex_);
  return all_;
}

}  // namespace longhaul

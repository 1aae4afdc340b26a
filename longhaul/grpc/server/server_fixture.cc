#include "longhaul/grpc/server/server_fixture.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"

namespace longhaul {

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, place, size), 0);
  EXPECT_EQ(::getsockname(socket, place, &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

LoopbackCluster::LoopbackCluster(const Sizes& jobs, const ServerOptions& common) : common_(common) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (try_start(jobs)) return;
  }
  ADD_FAILURE() << "no free ports";
}

bool LoopbackCluster::try_start(const Sizes& jobs) {
  std::map<std::string, JobTasks> addresses;
  for (const auto& [job, size] : jobs) {
    std::vector<std::string> of_job;
    for (int i = 0; i < size; ++i) of_job.push_back(fmt::format("localhost:{}", free_port()));
    addresses.emplace(job, JobTasks(of_job));
  }
  servers_.clear();
  try {
    spec_ = ClusterSpec(addresses);
    for (const auto& [job, size] : jobs) {
      for (int i = 0; i < size; ++i) start(job, i);
    }
  } catch (const AlreadyExistsError&) {
    return false;
  } catch (const InvalidArgumentError&) {
    return false;  // one port was drawn twice
  }
  return true;
}

void LoopbackCluster::start(const std::string& job, int index) {
  ServerOptions options = common_;
  options.job_name = job;
  options.task_index = index;
  servers_[{job, index}] = std::make_unique<Server>(spec_, options);
}

bool comes_true(const std::function<bool()>& done) {
  const Seconds end = Clock::real().now() + Seconds{60};
  while (!done()) {
    if (Clock::real().now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace longhaul

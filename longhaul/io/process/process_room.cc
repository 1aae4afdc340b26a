#include "longhaul/io/process/process_room.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/io/process/process_limits.h"

namespace longhaul {
namespace {

std::string limit_text(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return "not known";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

// Descriptors that are closed at the end.
class OpenedDescriptors {
 public:
  OpenedDescriptors() = default;
  ~OpenedDescriptors() {
    for (const int descriptor : opened_) ::close(descriptor);
  }
  OpenedDescriptors(const OpenedDescriptors&) = delete;
  OpenedDescriptors& operator=(const OpenedDescriptors&) = delete;

  // False: there are no more, for the reason in errno.
  bool open_one() {
    const AboveStdio above;
    const int descriptor = ::eventfd(0, EFD_CLOEXEC);
    if (descriptor >= 0) opened_.push_back(descriptor);
    return descriptor >= 0;
  }
  size_t count() const { return opened_.size(); }

 private:
  std::vector<int> opened_;
};

// Threads that wait until the end.
class StartedThreads {
 public:
  StartedThreads() = default;
  ~StartedThreads() {
    end_.set_value();
    for (std::thread& thread : started_) thread.join();
  }
  StartedThreads(const StartedThreads&) = delete;
  StartedThreads& operator=(const StartedThreads&) = delete;

  bool start_one() {
    try {
      started_.emplace_back([ended = ended_] { ended.wait(); });  // for the destructor, which follows at once
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  size_t count() const { return started_.size(); }

 private:
  std::promise<void> end_;
  const std::shared_future<void> ended_ = end_.get_future().share();
  std::vector<std::thread> started_;
};

void check_descriptors(int needed, const std::string& what) {
  OpenedDescriptors opened;
  while (opened.count() < static_cast<size_t>(needed)) {
    if (opened.open_one()) continue;
    const bool is_of_machine = errno == ENFILE;
    throw ResourceExhaustedError(fmt::format(
        "{} needs {} open files (descriptors) at least, but this process can have only {} more: {}", what, needed,
        opened.count(),
        is_of_machine ? "the machine has no more (fs.file-max)"
                      : fmt::format("raise the limit of {} (RLIMIT_NOFILE, `ulimit -n`), or close what it has open",
                                    limit_text(RLIMIT_NOFILE))));
  }
}

void check_threads(int needed, const std::string& what) {
  StartedThreads started;
  while (started.count() < static_cast<size_t>(needed)) {
    if (started.start_one()) continue;
    const auto of_group = thread_limit();
    throw ResourceExhaustedError(
        fmt::format("{} needs {} threads at least, but this process can have only {} more: raise the limit of {} for "
                    "all threads of "
                    "the user (RLIMIT_NPROC, `ulimit -u`){}, or end other processes",
                    what, needed, started.count(), limit_text(RLIMIT_NPROC),
                    of_group ? fmt::format(" or that of {} for the control group (pids.max)", *of_group) : ""));
  }
}

}  // namespace

void check_room(const ProcessRoom& needed, const std::string& what) {
  check_descriptors(needed.descriptors, what);
  check_threads(needed.threads, what);
}

}  // namespace longhaul

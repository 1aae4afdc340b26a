#include "longhaul/cluster/simulation/busy_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

struct Resting {
  Mutex mutex;
  std::multiset<pid_t> threads GUARDED_BY(mutex);
};

Resting& resting() {
  static auto* const threads = new Resting;
  return *threads;
}

bool is_at_rest(pid_t thread) {
  Resting& all = resting();
  MutexLock lock(all.mutex);
  return all.threads.count(thread) > 0;
}

// "R" runs or wants to, "D" waits for a disk, "S" sleeps; 0: the thread has ended, or nothing is known.
char state_of(pid_t thread) {
  const AboveStdio above;
  const int file = ::open(fmt::format("/proc/self/task/{}/stat", thread).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  const ssize_t size = ::read(file, text, sizeof text);
  ::close(file);
  const std::string_view line(text, size > 0 ? static_cast<size_t>(size) : 0);
  const size_t name_end = line.rfind(") ");  // the name may have such letters itself
  return name_end == line.npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

bool is_busy(std::string_view entry) {
  pid_t thread = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), thread);
  if (error != std::errc() || thread == ::gettid() || is_at_rest(thread)) return false;
  const char state = state_of(thread);
  return state == 'R' || state == 'D';
}

}  // namespace

ThreadAtRest::ThreadAtRest() {
  Resting& all = resting();
  MutexLock lock(all.mutex);
  all.threads.insert(::gettid());
}

ThreadAtRest::~ThreadAtRest() {
  Resting& all = resting();
  MutexLock lock(all.mutex);
  all.threads.erase(all.threads.find(::gettid()));
}

bool some_thread_is_busy() {
  static std::atomic<bool> is_asked = false;
  if (is_asked.exchange(true)) return true;
  const std::shared_ptr<void> asked(nullptr, [](void*) { is_asked = false; });
  const AboveStdio above;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), &::closedir);
  if (tasks == nullptr) return false;
  while (const dirent* entry = ::readdir(tasks.get())) {
    if (is_busy(entry->d_name)) return true;
  }
  return false;
}

}  // namespace longhaul

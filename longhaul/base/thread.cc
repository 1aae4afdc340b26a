#include "longhaul/base/thread.h"

#include <pthread.h>

#include <atomic>
#include <utility>
#include <vector>

namespace longhaul {
namespace {

std::atomic<int> running_threads{0};

// Counts a thread from before its start to its end, or until it turns out that it cannot be started.
class Counted {
 public:
  Counted() { ++running_threads; }
  Counted(Counted&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (counts_) --running_threads;
  }

 private:
  bool counts_ = true;
};

}  // namespace

NamedThread::NamedThread(std::string name, std::function<void()> body)
    : name_(std::move(name)),
      thread_([counted = Counted(), short_name = name_.substr(0, 15), body = std::move(body)]() mutable {
        const Counted until_the_end = std::move(counted);
        pthread_setname_np(pthread_self(), short_name.c_str());
        std::exchange(body, nullptr)();  // what it holds is destroyed before the thread counts as ended
      }) {}

void NamedThread::leave_to_parent() {
  static auto& left = *new std::vector<std::thread>;  // never destroyed
  left.push_back(std::move(thread_));
}

int NamedThread::running() {
  return running_threads;
}

NamedThread::~NamedThread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace longhaul

#include "longhaul/io/direct/io_queue.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <deque>
#include <system_error>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {
namespace {

struct Waiting {
  Transfer transfer;
  size_t tag;
};

IoQueue::Finished perform(const Transfer& transfer, size_t tag) {
  const auto call = transfer.kind == Transfer::Kind::kRead ? &::preadv : &::pwritev;
  const ssize_t result = retried([&] {
    return call(transfer.fd, transfer.pieces.data(), static_cast<int>(transfer.pieces.size()),
                static_cast<off_t>(transfer.offset));
  });
  return {tag, result < 0 ? -errno : result};
}

IoQueue::Finished take_first(std::deque<IoQueue::Finished>& finished) {
  const IoQueue::Finished first = finished.front();
  finished.pop_front();
  return first;
}

class ThreadedQueue : public IoQueue {
 public:
  explicit ThreadedQueue(size_t depth) {
    try {
      for (size_t i = 0; i < depth; ++i) threads_.emplace_back(fmt::format("lh-io-{}", i), [this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ThreadedQueue() override { stop(); }

  void submit(const Transfer& transfer, size_t tag) override {
    MutexLock lock(mutex_);
    waiting_.push_back({transfer, tag});
    changed_.notify_all();
  }

  Finished wait() override {
    MutexLock lock(mutex_);
    while (finished_.empty()) changed_.wait(mutex_);  // wait: work() ends it, of a transfer that is under way
    return take_first(finished_);
  }

  std::optional<Finished> poll() override {
    MutexLock lock(mutex_);
    return finished_.empty() ? std::nullopt : std::optional(take_first(finished_));
  }

 private:
  void work() {
    MutexLock lock(mutex_);
    while (true) {
      while (waiting_.empty() && !stopped_) changed_.wait(mutex_);  // wait: submit() and stop() end it
      if (waiting_.empty()) return;
      const Waiting next = waiting_.front();
      waiting_.pop_front();
      mutex_.unlock();
      const Finished finished = perform(next.transfer, next.tag);
      mutex_.lock();
      finished_.push_back(finished);
      changed_.notify_all();
    }
  }

  void stop() {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    for (NamedThread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::vector<NamedThread> threads_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  std::deque<Finished> finished_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
};

class PlainQueue : public IoQueue {
 public:
  void submit(const Transfer& transfer, size_t tag) override {
    const Finished finished = perform(transfer, tag);
    if (transfer.kind == Transfer::Kind::kWrite && finished.result > 0) {
      ::sync_file_range(transfer.fd, static_cast<off_t>(transfer.offset), finished.result, SYNC_FILE_RANGE_WRITE);
    }
    finished_.push_back(finished);
  }

  Finished wait() override { return take_first(finished_); }
  std::optional<Finished> poll() override { return finished_.empty() ? std::nullopt : std::optional(wait()); }

 private:
  std::deque<Finished> finished_;
};

}  // namespace

std::unique_ptr<IoQueue> make_threaded_queue(size_t depth) {
  return std::make_unique<ThreadedQueue>(depth);
}

std::unique_ptr<IoQueue> make_plain_queue(size_t) {
  return std::make_unique<PlainQueue>();
}

std::unique_ptr<IoQueue> make_io_queue(size_t depth) {
  if (auto queue = make_uring_queue(depth)) return queue;
  try {
    return make_threaded_queue(depth);
  } catch (const std::system_error&) {  // no more threads
    return make_plain_queue(depth);
  }
}

}  // namespace longhaul

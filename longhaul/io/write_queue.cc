#include "longhaul/io/write_queue.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <deque>
#include <system_error>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/io/posix_call.h"

namespace longhaul {
namespace {

struct Write {
  int fd;
  uint64_t offset;
  std::span<const iovec> pieces;
  size_t tag;
};

WriteQueue::Finished perform(const Write& write) {
  const ssize_t written = retried([&] {
    return ::pwritev(write.fd, write.pieces.data(), static_cast<int>(write.pieces.size()),
                     static_cast<off_t>(write.offset));
  });
  return {write.tag, written < 0 ? -errno : written};
}

class ThreadedWriteQueue : public WriteQueue {
 public:
  explicit ThreadedWriteQueue(size_t depth) {
    try {
      for (size_t i = 0; i < depth; ++i) threads_.emplace_back(fmt::format("lh-write-{}", i), [this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ThreadedWriteQueue() override { stop(); }

  void submit(int fd, uint64_t offset, std::span<const iovec> pieces, size_t tag) override {
    MutexLock lock(mutex_);
    waiting_.push_back({fd, offset, pieces, tag});
    changed_.notify_all();
  }

  Finished wait() override {
    MutexLock lock(mutex_);
    while (finished_.empty()) changed_.wait_for(mutex_, kLookAround);
    const Finished finished = finished_.front();
    finished_.pop_front();
    return finished;
  }

 private:
  static constexpr Seconds kLookAround{1};

  void work() {
    MutexLock lock(mutex_);
    while (true) {
      while (waiting_.empty() && !stopped_) changed_.wait_for(mutex_, kLookAround);
      if (waiting_.empty()) return;
      const Write write = waiting_.front();
      waiting_.pop_front();
      mutex_.unlock();
      const Finished finished = perform(write);
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
  std::deque<Write> waiting_ GUARDED_BY(mutex_);
  std::deque<Finished> finished_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
};

class PlainWriteQueue : public WriteQueue {
 public:
  void submit(int fd, uint64_t offset, std::span<const iovec> pieces, size_t tag) override {
    const Finished finished = perform({fd, offset, pieces, tag});
    if (finished.result > 0) {
      ::sync_file_range(fd, static_cast<off_t>(offset), finished.result, SYNC_FILE_RANGE_WRITE);
    }
    finished_.push_back(finished);
  }

  Finished wait() override {
    const Finished finished = finished_.front();
    finished_.pop_front();
    return finished;
  }

 private:
  std::deque<Finished> finished_;
};

}  // namespace

std::unique_ptr<WriteQueue> make_threaded_write_queue(size_t depth) {
  return std::make_unique<ThreadedWriteQueue>(depth);
}

std::unique_ptr<WriteQueue> make_plain_write_queue(size_t) {
  return std::make_unique<PlainWriteQueue>();
}

std::unique_ptr<WriteQueue> make_write_queue(size_t depth) {
  if (auto queue = make_uring_write_queue(depth)) return queue;
  try {
    return make_threaded_write_queue(depth);
  } catch (const std::system_error&) {  // no more threads
    return make_plain_write_queue(depth);
  }
}

}  // namespace longhaul

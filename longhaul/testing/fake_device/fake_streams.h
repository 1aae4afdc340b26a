#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace longhaul::fake_device {

// The queues of all fake devices. A task runs when somebody waits for it, on the thread of the one who waits; a queue
// that grows long runs its oldest task, as a GPU's does.
class FakeStreams {
 public:
  // A place in a stream: all tasks before it have been run when it is reached.
  struct Moment {
    c10::Stream stream;
    int64_t position;
  };

  static FakeStreams& instance();

  // Those of the calling thread.
  c10::Device device() const;
  c10::Device exchange_device(c10::Device device);
  c10::Stream current() const { return current(device()); }
  c10::Stream current(c10::Device device) const;
  c10::Stream exchange(c10::Stream stream);
  c10::Stream from_pool(c10::Device device);

  void enqueue(c10::Stream stream, std::function<void()> task);
  Moment now(c10::Stream stream);
  // The stream continues when that moment is reached.
  void block(c10::Stream stream, const Moment& until);

  // Whether the moment is reached. If not, its stream runs a task, so that one who asks again and again gets there.
  bool reached(const Moment& moment);
  // The host waits. Throws c10::Error when a kernel has failed.
  void wait(const Moment& moment);
  void wait(c10::Stream stream) { wait(now(stream)); }
  void wait_for_all();

  void lose(const std::string& reason);
  void find_again();

 private:
  struct Queue {
    std::deque<std::function<void()>> tasks;
    int64_t enqueued = 0;
    int64_t done = 0;
  };
  using Key = std::pair<int, int64_t>;  // the device's index and the stream's id

  Queue& queue(c10::Stream stream);
  void run_one(Queue& queue);
  void run_until(Queue& queue, int64_t position);

  // Tasks of one stream wait for those of another.
  std::recursive_mutex mutex_;
  std::map<Key, Queue> queues_;
  int64_t next_stream_ = 1;
  std::string lost_;
};

}  // namespace longhaul::fake_device

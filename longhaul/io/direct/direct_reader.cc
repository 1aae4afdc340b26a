#include "longhaul/io/direct/direct_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/huge_pages.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {
namespace {

constexpr size_t kBufferAlignment = 4096;

// The file of `fd` once more, past the kernel's cache; -1 where the file system refuses that.
class DirectDescriptor {
 public:
  DirectDescriptor(int fd, bool wanted) {
    if (!wanted) return;
    const std::string path = fmt::format("/proc/self/fd/{}", fd);  // whatever name the file has by now
    const AboveStdio above;
    fd_ = retried([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC); });
  }
  ~DirectDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  DirectDescriptor(const DirectDescriptor&) = delete;
  DirectDescriptor& operator=(const DirectDescriptor&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

using Buffer = std::unique_ptr<char, void (*)(char*)>;

void free_memory(char* memory) {
  std::free(memory);
}

// Windows of files that are only looked at, as checkpoints are that are read back: of huge pages, of which a device is
// told more in one piece, and kept from one batch to the next, so that they cost page faults the first time alone. Any
// thread.
class WindowPool {
 public:
  static constexpr size_t kBytes = ReadPlanOptions{}.window_bytes;

  static char* take() {
    MutexLock lock(mutex());
    if (free().empty()) return map_pages(kBytes);
    char* const memory = free().back();
    free().pop_back();
    return memory;
  }
  static void give_back(char* memory) {
    MutexLock lock(mutex());
    if (free().size() < kMost) {
      free().push_back(memory);
    } else {
      unmap_pages(memory, kBytes);
    }
  }

 private:
  static constexpr size_t kMost = 16;

  static Mutex& mutex() {
    static auto* const mutex = new Mutex;
    return *mutex;
  }
  static std::vector<char*>& free() {
    static auto* const free = new std::vector<char*>;
    return *free;
  }
};

// A place for one read that is under way: what the kernel needs until it is over.
class Slot {
 public:
  explicit Slot(bool is_only_shown) : is_only_shown_(is_only_shown) {}

  // Where the bytes of `read` go, of which the first lie at `straight`.
  std::span<const iovec> aim(const PlannedRead& read, char* straight) {
    read_ = &read;
    pieces_.clear();
    if (read.straight > 0) pieces_.push_back({straight, read.straight});
    if (const size_t rest = read.size - read.straight; rest > 0) {
      if (rest > buffer_bytes_) enlarge(rest);
      pieces_.push_back({buffer_.get(), rest});
    }
    return pieces_;
  }

  const PlannedRead& read() const { return *read_; }
  // The byte of the buffer that is `at` bytes behind the start of the read.
  char* buffered(size_t at) { return buffer_.get() + (at - read_->straight); }

 private:
  void enlarge(size_t bytes) {
    const bool is_pooled = is_only_shown_ && bytes <= WindowPool::kBytes;
    const size_t rounded =
        is_pooled ? WindowPool::kBytes : (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    char* const memory =
        is_pooled ? WindowPool::take() : static_cast<char*>(std::aligned_alloc(kBufferAlignment, rounded));
    buffer_ = Buffer(memory, is_pooled ? &WindowPool::give_back : &free_memory);
    if (buffer_ == nullptr)
      throw ResourceExhaustedError(fmt::format("out of memory for a buffer of {} bytes", rounded));
    buffer_bytes_ = rounded;
  }

  bool is_only_shown_;
  const PlannedRead* read_ = nullptr;
  std::vector<iovec> pieces_;
  Buffer buffer_{nullptr, &free_memory};
  size_t buffer_bytes_ = 0;
};

class BatchRead {
 public:
  BatchRead(const ReadableFile& file, int fd, std::span<const ReadRequest> requests, const ReadableFile::UsePart& use,
            std::vector<PlannedRead> plan, const DirectReaderOptions& options)
      : file_(file), fd_(fd), requests_(requests), use_(use), plan_(std::move(plan)) {
    const bool is_only_shown = std::ranges::all_of(requests, [](auto& request) { return request.out == nullptr; });
    const size_t slots = std::min(options.in_flight, plan_.size());
    for (size_t i = 0; i < slots; ++i) {
      slots_.emplace_back(is_only_shown);
      free_.push_back(i);
    }
    queue_ = options.queue(slots_.size());
  }
  ~BatchRead() { drain(); }
  BatchRead(const BatchRead&) = delete;
  BatchRead& operator=(const BatchRead&) = delete;

  void run() {
    size_t next = 0;
    while (next < plan_.size() || free_.size() < slots_.size()) {
      while (next < plan_.size() && !free_.empty()) begin(plan_[next++]);
      const IoQueue::Finished finished = queue_->wait();
      const size_t brought = finished.result < 0 ? 0 : static_cast<size_t>(finished.result);
      free_.push_back(finished.tag);
      for (const PlannedPart& part : slots_[finished.tag].read().parts) use(part, slots_[finished.tag], brought);
    }
  }

 private:
  void begin(const PlannedRead& read) {
    const size_t slot = free_.back();
    const PlannedPart& first = read.parts.front();
    char* straight = read.straight == 0 ? nullptr : requests_[first.request].out + first.begin;
    queue_->submit({Transfer::Kind::kRead, fd_, read.offset, slots_[slot].aim(read, straight)}, slot);
    free_.pop_back();
  }

  void use(const PlannedPart& part, Slot& slot, size_t brought) {
    const size_t straight = slot.read().straight;
    char* out = requests_[part.request].out;
    out = out == nullptr ? slot.buffered(part.at) : out + part.begin;
    if (part.at + part.size > brought) {
      const ReadPart again = read_again(part, out);
      if (again.error || !again.bytes.empty()) use_(again);
      return;
    }
    if (const size_t there = std::min(straight, part.size); there < part.size && requests_[part.request].out) {
      std::memcpy(out + there, slot.buffered(part.at + there), part.size - there);
    }
    use_({part.request, part.begin, {out, part.size}, nullptr});
  }

  ReadPart read_again(const PlannedPart& part, char* out) const {
    ReadPart result{.request = part.request, .begin = part.begin};
    try {
      result.bytes = {out, file_.read(requests_[part.request].offset + part.begin, out, part.size)};
    } catch (const Error&) {
      result.error = std::current_exception();
    }
    return result;
  }

  // After an error: the kernel may still write to the requests' memory.
  void drain() noexcept {
    try {
      while (free_.size() < slots_.size()) free_.push_back(queue_->wait().tag);
    } catch (const Error&) {  // the queue's end waits for what is left
    }
    queue_.reset();
  }

  const ReadableFile& file_;
  const int fd_;
  const std::span<const ReadRequest> requests_;
  const ReadableFile::UsePart& use_;
  const std::vector<PlannedRead> plan_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_;  // slots
  std::unique_ptr<IoQueue> queue_;
};

size_t total_bytes(std::span<const ReadRequest> requests) {
  size_t total = 0;
  for (const ReadRequest& request : requests) total += request.count;
  return total;
}

}  // namespace

void read_directly(const ReadableFile& file, int fd, std::span<const ReadRequest> requests,
                   const ReadableFile::UsePart& use, const DirectReaderOptions& options) {
  if (total_bytes(requests) < options.smallest_batch) return file.ReadableFile::read_batch(requests, use);
  const DirectDescriptor direct(fd, options.direct);
  const bool is_direct = direct.fd() >= 0;
  ReadPlanOptions how = options.plan;
  if (!is_direct) how.alignment = 1;
  std::vector<PlannedRead> plan = plan_reads(requests, how);
  if (!plan.empty()) BatchRead(file, is_direct ? direct.fd() : fd, requests, use, std::move(plan), options).run();
}

}  // namespace longhaul

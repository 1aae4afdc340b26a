#include <liburing.h>

#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/io/posix_call.h"
#include "longhaul/io/write_queue.h"

namespace longhaul {
namespace {

class UringWriteQueue : public WriteQueue {
 public:
  explicit UringWriteQueue(const io_uring& ring) : ring_(ring) {}
  ~UringWriteQueue() override { io_uring_queue_exit(&ring_); }
  UringWriteQueue(const UringWriteQueue&) = delete;
  UringWriteQueue& operator=(const UringWriteQueue&) = delete;

  void submit(int fd, uint64_t offset, std::span<const iovec> pieces, size_t tag) override {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) throw InternalError("io_uring: more writes under way than it was made for");
    io_uring_prep_writev(sqe, fd, pieces.data(), static_cast<unsigned>(pieces.size()), offset);
    io_uring_sqe_set_data64(sqe, tag);
    int submitted;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR);
    if (submitted < 0) refused_.push_back({tag, submitted});
  }

  Finished wait() override {
    if (!refused_.empty()) {
      const Finished finished = refused_.back();
      refused_.pop_back();
      return finished;
    }
    io_uring_cqe* cqe = nullptr;
    int error;
    do {
      error = io_uring_wait_cqe(&ring_, &cqe);
    } while (error == -EINTR || error == -EAGAIN);
    if (error < 0) throw_errno(-error, "io_uring_enter");
    const Finished finished{static_cast<size_t>(io_uring_cqe_get_data64(cqe)), cqe->res};
    io_uring_cqe_seen(&ring_, cqe);
    return finished;
  }

 private:
  io_uring ring_;
  std::vector<Finished> refused_;
};

}  // namespace

std::unique_ptr<WriteQueue> make_uring_write_queue(size_t depth) {
  io_uring ring;
  if (io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0) != 0) return nullptr;
  return std::make_unique<UringWriteQueue>(ring);
}

}  // namespace longhaul

#include <liburing.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/io/direct/io_queue.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {
namespace {

// Repeats a call of the library's, which returns errors as negative numbers, that a signal interrupted.
template <typename Call>
int retried_enter(Call call) {
  int result;
  do {
    result = call();
  } while (result == -EINTR);
  return result;
}

class UringQueue : public IoQueue {
 public:
  explicit UringQueue(const io_uring& ring) : ring_(ring) {}
  ~UringQueue() override {
    wait_for_all();
    io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  void submit(const Transfer& transfer, size_t tag) override {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) throw InternalError("io_uring: more requests in flight than the queue was made for");
    const auto pieces = static_cast<unsigned>(transfer.pieces.size());
    if (transfer.kind == Transfer::Kind::kRead) {
      io_uring_prep_readv(sqe, transfer.fd, transfer.pieces.data(), pieces, transfer.offset);
      sqe->flags |= IOSQE_ASYNC;  // new pages are got by the kernel's threads, and not one after another here
    } else {
      io_uring_prep_writev(sqe, transfer.fd, transfer.pieces.data(), pieces, transfer.offset);
    }
    io_uring_sqe_set_data64(sqe, tag);
    const int submitted = retried_enter([&] { return io_uring_submit(&ring_); });
    if (submitted > 0) in_kernel_ += static_cast<size_t>(submitted);
    if (io_uring_sq_ready(&ring_) == 0) return;
    refused_.push_back({tag, -EAGAIN});  // whatever the reason, nothing was begun: an ordinary call may do
    io_uring_prep_nop(sqe);              // it goes with the next one
    io_uring_sqe_set_data64(sqe, kNothing);
  }

  Finished wait() override {
    for (;;) {
      if (const auto finished = poll()) return *finished;
      wait_for_ring();
    }
  }

  std::optional<Finished> poll() override {
    if (!refused_.empty()) {
      const Finished finished = refused_.back();
      refused_.pop_back();
      return finished;
    }
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const Finished finished{static_cast<size_t>(io_uring_cqe_get_data64(cqe)), cqe->res};
      io_uring_cqe_seen(&ring_, cqe);
      --in_kernel_;
      if (finished.tag != kNothing) return finished;
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kNothing = SIZE_MAX;  // a tag of ours

  // May return early.
  void wait_for_ring() {
    io_uring_cqe* cqe = nullptr;
    const int error = io_uring_wait_cqe(&ring_, &cqe);  // wait: the kernel ends it, and a signal
    if (error == -EAGAIN || error == -EBUSY) {
      wait_for_descriptor();
    } else if (error < 0 && error != -EINTR) {
      throw_errno(-error, "io_uring_enter");
    }
  }

  // Where io_uring_enter() does not wait: the ring's descriptor can be read from as soon as something has finished. May
  // return early.
  void wait_for_descriptor() noexcept {
    struct pollfd ring{.fd = ring_.ring_fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&ring, 1, -1);  // wait: the kernel ends it, and a signal
    const bool cannot_wait = ready < 0 ? errno != EINTR : (ring.revents & POLLIN) == 0;
    // wait: polls: what is finished is seen in memory, and nothing notifies where both calls are refused or the
    // program has closed the descriptor
    if (cannot_wait) ::usleep(1000);
  }

  // The kernel reads from and writes to memory of ours as long as anything is under way, also after the ring is closed.
  void wait_for_all() noexcept {
    while (in_kernel_ > 0) {
      io_uring_cqe* cqe = nullptr;
      if (io_uring_wait_cqe(&ring_, &cqe) == 0) {  // wait: the kernel ends it, and a signal
        io_uring_cqe_seen(&ring_, cqe);
        --in_kernel_;
      } else {
        wait_for_descriptor();
      }
    }
  }

  io_uring ring_;
  size_t in_kernel_ = 0;  // submitted, and not seen to be over
  std::vector<Finished> refused_;
};

// Whether the kernel does what it is asked: filters of containers may let a ring be made, and refuse its use.
bool works(io_uring& ring) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  if (sqe == nullptr) return false;
  io_uring_prep_nop(sqe);
  // wait: the kernel ends it: nothing is to be done
  if (retried_enter([&] { return io_uring_submit_and_wait(&ring, 1); }) != 1) return false;
  io_uring_cqe* cqe = nullptr;
  if (io_uring_peek_cqe(&ring, &cqe) != 0) return false;
  io_uring_cqe_seen(&ring, cqe);
  return true;
}

}  // namespace

std::unique_ptr<IoQueue> make_uring_queue(size_t depth) {
  io_uring ring;
  const AboveStdio above;
  if (io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0) != 0) return nullptr;
  if (works(ring)) return std::make_unique<UringQueue>(ring);
  io_uring_queue_exit(&ring);
  return nullptr;
}

}  // namespace longhaul

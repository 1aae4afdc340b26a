#include "longhaul/status/reply_box.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

OwnedSocket make_wake_event() {
  const AboveStdio above;
  OwnedSocket event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.is_open()) throw_errno(errno, "eventfd");
  return event;
}

}  // namespace

ReplyBox::ReplyBox() : event_(make_wake_event()) {}

void ReplyBox::put(Reply reply) {
  {
    MutexLock lock(mutex_);
    replies_.push_back(std::move(reply));
  }
  wake();
}

std::vector<ReplyBox::Reply> ReplyBox::take() {
  uint64_t count;
  while (::read(fd(), &count, sizeof count) > 0) continue;
  MutexLock lock(mutex_);
  return std::exchange(replies_, {});
}

void ReplyBox::wake() const {
  const uint64_t one = 1;
  while (::write(fd(), &one, sizeof one) < 0 && errno == EINTR) continue;
}

}  // namespace longhaul

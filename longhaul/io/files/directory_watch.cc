#include "longhaul/io/files/directory_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/log.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {
namespace {

constexpr uint32_t kChanges = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_CREATE;
constexpr uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

}  // namespace

DirectoryWatch::DirectoryWatch(const std::string& directory, std::function<void(const DirectoryChange&)> changed,
                               Notices notices)
    : changed_(std::move(changed)) {
  open(directory, notices);
  if (!is_watching_) return;
  try {
    thread_ = NamedThread("lh-watch", [this] { watch(); });
  } catch (...) {
    close_all();
    throw;
  }
}

DirectoryWatch::~DirectoryWatch() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    retried([&] { return ::write(end_, &one, sizeof(one)); });  // its count is 0, so it has room
    thread_.join();
  }
  close_all();
}

void DirectoryWatch::open(const std::string& directory, Notices notices) {
  const AboveStdio above;
  inotify_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  const bool is_open = inotify_ >= 0 && end_ >= 0;
  const uint32_t writes = notices == Notices::kWrites ? IN_MODIFY : 0;
  is_watching_ =
      is_open && ::inotify_add_watch(inotify_, directory.c_str(), kChanges | writes | kGone | IN_ONLYDIR) >= 0;
  if (!is_watching_) log_debug("{} cannot be watched: {}", directory, std::strerror(errno));
}

void DirectoryWatch::close_all() {
  for (int* fd : {&inotify_, &end_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

void DirectoryWatch::watch() {
  std::array<struct pollfd, 2> ready{{{inotify_, POLLIN, 0}, {end_, POLLIN, 0}}};
  while (true) {
    const int count =
        ::poll(ready.data(), ready.size(), -1);  // wait: a change in the directory or the destructor ends it
    if (count < 0 && errno != EINTR) break;
    if (count <= 0) continue;
    if (ready[1].revents != 0) return;
    if (!read_changes()) break;
  }
  is_watching_ = false;
  changed_({});
}

bool DirectoryWatch::read_changes() {
  alignas(struct inotify_event) std::array<char, 16384> buffer;
  const ssize_t size = retried([&] { return ::read(inotify_, buffer.data(), buffer.size()); });
  if (size < 0) return errno == EAGAIN;
  for (size_t at = 0; at + sizeof(struct inotify_event) <= static_cast<size_t>(size);) {
    struct inotify_event event;
    std::memcpy(&event, buffer.data() + at, sizeof(event));
    if ((event.mask & kGone) != 0) return false;
    const char* name = buffer.data() + at + sizeof(event);                                     // it ends in a NUL
    const bool is_empty_file = (event.mask & IN_CREATE) != 0 && (event.mask & IN_ISDIR) == 0;  // its writes are told of
    if (!is_empty_file) changed_({.name = event.len > 0 ? name : "", .is_removal = (event.mask & IN_DELETE) != 0});
    at += sizeof(event) + event.len;
  }
  return true;
}

}  // namespace longhaul

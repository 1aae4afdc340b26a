#include "longhaul/console/events/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

#include "longhaul/base/above_stdio.h"

namespace longhaul::console {
namespace {

int watch(const std::string& directory) {
  const AboveStdio above;
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor >= 0) ::inotify_add_watch(descriptor, directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  return descriptor;
}

}  // namespace

DirectoryWatch::DirectoryWatch(const std::string& directory) : descriptor_(watch(directory)) {}

DirectoryWatch::~DirectoryWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DirectoryWatch::wait_for_change(Seconds timeout) {
  pollfd change{.fd = descriptor_, .events = POLLIN, .revents = 0};
  const int milliseconds = static_cast<int>(std::clamp(timeout.count(), 0.0, 3600.0) * 1000);
  ::poll(&change, 1, milliseconds);  // wait: a file server does not tell of what other machines write
  char events[4096];
  while (descriptor_ >= 0 && ::read(descriptor_, events, sizeof events) > 0) {
  }
}

}  // namespace longhaul::console

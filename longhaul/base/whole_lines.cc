#include "longhaul/base/whole_lines.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "longhaul/base/without_sigpipe.h"

namespace longhaul {
namespace {

constexpr int kMostTries = 1000;  // without a byte more

// What takes a part of a write() may make it wait for a reader.
bool is_pipe(int descriptor) {
  struct stat file{};
  return fstat(descriptor, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

// Whether a write() of at most PIPE_BUF bytes does not wait; it may fail.
bool takes_more(int descriptor, Seconds timeout) {
  pollfd wanted{.fd = descriptor, .events = POLLOUT, .revents = 0};
  const int milliseconds = static_cast<int>(timeout.count() * 1000);
  // wait: for a reader that has stopped
  return ::poll(&wanted, 1, milliseconds) > 0;
}

}  // namespace

bool WholeLines::write(std::string_view line) {
  const std::string text = (is_cut_ ? "\n" : "") + std::string(line);
  std::string_view left = text;
  waits_ = write_all(left);
  is_cut_ = !waits_ && (is_cut_ || left.size() < text.size());
  return waits_;
}

bool WholeLines::write_all(std::string_view& left) const {
  const WithoutSigpipe guard;
  const size_t piece = is_pipe(descriptor_) ? PIPE_BUF : left.size();
  for (int tries = 0; !left.empty() && tries < kMostTries; ++tries) {
    if (!takes_more(descriptor_, waits_ ? timeout_ : Seconds{0})) return false;
    const ssize_t written = ::write(descriptor_, left.data(), std::min(left.size(), piece));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written <= 0) continue;
    left.remove_prefix(static_cast<size_t>(written));
    tries = 0;
  }
  return left.empty();
}

}  // namespace longhaul

#include "longhaul/io/files/resolved_path.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <optional>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit

// Where the symbolic link of that name leads; nullopt: it is none, or there is nothing.
std::optional<std::string> target_of(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t count = ::readlink(path.c_str(), target, sizeof(target));
  if (count >= 0 && static_cast<size_t>(count) < sizeof(target)) return std::string(target, static_cast<size_t>(count));
  if (count >= 0) throw_errno(ENAMETOOLONG, "read link " + path);
  switch (errno) {
    case EINVAL:  // no link
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG: return std::nullopt;
    default: throw_errno(errno, "read link " + path);
  }
}

// Goes along a path part by part. What has been walked has no link in it, so that ".." is its parent.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path), rest_(path) {}

  std::string end() {
    while (!rest_.empty()) step(take_part());
    return walked_.empty() ? "/" : walked_;
  }

 private:
  std::string take_part() {
    const size_t slash = rest_.find('/');
    std::string part = rest_.substr(0, slash);
    rest_.erase(0, slash == rest_.npos ? slash : slash + 1);
    return part;
  }

  void step(const std::string& part) {
    if (part.empty() || part == ".") return;
    if (part == "..") return leave();
    const std::string next = walked_ + "/" + part;
    if (const auto target = target_of(next)) return follow(*target);
    walked_ = next;
  }

  void leave() {
    if (!walked_.empty()) walked_.erase(walked_.rfind('/'));
  }

  void follow(const std::string& target) {
    if (++links_ > kMostLinks) {
      throw FailedPreconditionError(path_ + ": it goes through more than 40 symbolic links, or in a circle");
    }
    if (target.starts_with('/')) walked_.clear();
    rest_ = target + "/" + rest_;
  }

  const std::string& path_;
  std::string walked_;  // "/a/b", or empty for "/"
  std::string rest_;
  int links_ = 0;
};

std::string without_last_slashes(std::string path) {
  path.erase(path.find_last_not_of('/') + 1);
  return path;
}

}  // namespace

std::string resolved_path(const std::string& path) {
  return Walk(path).end();
}

std::string resolved_entry(const std::string& path) {
  const std::string entry = without_last_slashes(path), name = base_name(entry);
  if (name.empty() || name == "." || name == "..") {
    throw InvalidArgumentError(path + ": it does not name something in a directory");
  }
  return join_path(resolved_path(directory_name(entry)), name);
}

}  // namespace longhaul

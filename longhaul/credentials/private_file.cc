#include "longhaul/credentials/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr mode_t kOfOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kOfOthersBesideItsGroup = S_IWGRP | S_IXGRP | S_IRWXO;

// An open file, so that what was checked is what is read.
class CredentialFile {
 public:
  explicit CredentialFile(const std::string& path) : path_(path) {
    const AboveStdio above;
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) throw_errno(errno, "security: open " + path);
    if (::fstat(fd_, &info_) != 0) {
      const int error = errno;
      ::close(fd_);
      throw_errno(error, "security: stat " + path);
    }
  }
  ~CredentialFile() { ::close(fd_); }
  CredentialFile(const CredentialFile&) = delete;
  CredentialFile& operator=(const CredentialFile&) = delete;

  void check_is_private() const {
    const bool is_of_root = info_.st_uid == 0 && ::geteuid() != 0;
    if ((info_.st_mode & (is_of_root ? kOfOthersBesideItsGroup : kOfOthers)) == 0) return;
    throw PermissionDeniedError(
        fmt::format("security: {} is a secret, but others may read or change it (mode {:04o}). Run `chmod 600 {}`; in "
                    "Kubernetes, give the secret's volume `defaultMode: 0400`",
                    path_, info_.st_mode & 07777, path_));
  }

  std::string contents() const {
    if (!S_ISREG(info_.st_mode)) refuse("it is not a regular file");
    std::string text(kMostCredentialBytes + 1, '\0');
    size_t size = 0;
    while (size < text.size()) {
      const ssize_t count = ::read(fd_, text.data() + size, text.size() - size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_errno(errno, "security: read " + path_);
      if (count == 0) break;
      size += static_cast<size_t>(count);
    }
    if (size == 0) refuse("the file is empty");
    if (size > kMostCredentialBytes) refuse(fmt::format("the file has more than {} bytes", kMostCredentialBytes));
    text.resize(size);
    return text;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(fmt::format("security: {}: {}", path_, why));
  }

  const std::string path_;
  int fd_ = -1;
  struct stat info_{};
};

}  // namespace

std::string read_public_file(const std::string& path) {
  return CredentialFile(path).contents();
}

std::string read_private_file(const std::string& path) {
  const CredentialFile file(path);
  file.check_is_private();
  return file.contents();
}

}  // namespace longhaul

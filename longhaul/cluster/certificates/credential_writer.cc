#include "longhaul/cluster/certificates/credential_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

// A new file next to the one to write; its name goes with this object.
class NewCredential {
 public:
  NewCredential(const std::string& path, mode_t mode) : path_(path + ".new") {
    const AboveStdio above;
    ::unlink(path_.c_str());  // that an interrupted call has left
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd_ < 0) throw_errno(errno, "create " + path_);
    if (::fchmod(fd_, mode) != 0) fail("set the mode of");
  }
  ~NewCredential() {
    if (fd_ >= 0) ::close(fd_);
    ::unlink(path_.c_str());
  }
  NewCredential(const NewCredential&) = delete;
  NewCredential& operator=(const NewCredential&) = delete;

  void write(std::string_view rest) {
    while (!rest.empty()) {
      const ssize_t count = ::write(fd_, rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write");
      rest.remove_prefix(static_cast<size_t>(count));
    }
    if (::fsync(fd_) != 0) fail("sync");
    if (::close(std::exchange(fd_, -1)) != 0) fail("close");
  }

  // A link fails where something is.
  void become(const std::string& path, bool replace) {
    const int failed = replace ? ::rename(path_.c_str(), path.c_str()) : ::link(path_.c_str(), path.c_str());
    if (failed != 0) throw_errno(errno, "create " + path);
  }

 private:
  // The destructor is not called if the constructor throws.
  [[noreturn]] void fail(const char* what) {
    const int error = errno;
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    ::unlink(path_.c_str());
    throw_errno(error, std::string(what) + " " + path_);
  }

  const std::string path_;
  int fd_ = -1;
};

}  // namespace

CredentialsTurn::CredentialsTurn(const std::string& directory) {
  {
    const AboveStdio above;
    directory_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (directory_ < 0) throw_errno(errno, "open " + directory);
  if (::flock(directory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(directory_);
  throw FailedPreconditionError(
      fmt::format("another process is writing certificates in {}: wait until it has ended", directory));
}

CredentialsTurn::~CredentialsTurn() {
  ::close(directory_);
}

void write_credential(const std::string& path, std::string_view contents, bool is_secret, bool replace) {
  {
    NewCredential file(path, is_secret ? 0600 : 0644);
    file.write(contents);
    file.become(path, replace);
  }
  FileSystem::real().sync_directory(directory_name(path));
}

}  // namespace longhaul

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/io/direct/direct_reader.h"
#include "longhaul/io/direct/direct_writer.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {

namespace {

constexpr size_t kBufferBytes = 128 * 1024;

[[noreturn]] void throw_last_errno(const char* operation, const std::string& path) {
  throw_errno(errno, std::string(operation) + " " + path);
}

[[noreturn]] void throw_no_regular_file(const char* operation, const std::string& path) {
  throw InvalidArgumentError(std::string(operation) + " " + path +
                             ": it is not a regular file, but a pipe, a socket or a device");
}

int open_or_throw(const char* operation, const std::string& path, int flags, mode_t mode = 0) {
  const AboveStdio above;
  int fd = retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0 && errno == ENXIO) throw_no_regular_file(operation, path);
  if (fd < 0) throw_last_errno(operation, path);
  return fd;
}

// Opens without waiting for who has the other end, as one of a pipe would, and refuses what is not of a kind that
// `is_right` takes. From then on it is as any other descriptor.
int open_of_kind(const char* operation, const std::string& path, int flags, bool (*is_right)(mode_t)) {
  const int fd = open_or_throw(operation, path, flags | O_NONBLOCK | O_NOCTTY, 0666);
  struct stat info;
  int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(info.st_mode)) error = EISDIR;
  const bool is_of_kind = error != 0 || is_right(info.st_mode);
  if (error == 0 && is_of_kind && ::fcntl(fd, F_SETFL, flags & O_ACCMODE) != 0) error = errno;
  if (error == 0 && is_of_kind) return fd;
  ::close(fd);
  if (error != 0) throw_errno(error, std::string(operation) + " " + path);
  throw_no_regular_file(operation, path);
}

int create_or_throw(const std::string& path, FileSystem::IfExists if_exists) {
  const int flags = O_WRONLY | O_CREAT | (if_exists == FileSystem::IfExists::kFail ? O_EXCL : O_TRUNC);
  return open_of_kind("create", path, flags, [](mode_t mode) { return S_ISREG(mode) || S_ISCHR(mode); });
}

int open_to_read(const std::string& path) {
  return open_of_kind("open", path, O_RDONLY, [](mode_t mode) { return S_ISREG(mode); });
}

struct stat stat_or_throw(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) throw_last_errno("stat", path);
  return info;
}

// nullopt: there can be nothing of that name. What the system does not let us see, or cannot look at (a server that
// does not answer), is something else.
std::optional<struct stat> find_stat(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) return info;
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG: return std::nullopt;
    default: throw_last_errno("stat", path);
  }
}

// After a failed write the file holds a part of the data, so nothing more goes into it.
class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) { buffer_.reserve(kBufferBytes); }
  ~PosixWritableFile() override {
    if (fd_ < 0) return;
    try {
      close();
    } catch (...) {
    }
  }

  void append(std::string_view data) override {
    check_usable("append");
    if (buffer_.size() + data.size() > kBufferBytes) flush();
    if (data.size() > kBufferBytes) {
      write(data);
    } else {
      buffer_.append(data);
    }
  }

  void flush() override {
    check_usable("flush");
    write(buffer_);
    buffer_.clear();
  }

  void sync() override {
    flush();
    const int error = sync_data(fd_);
    if (error == 0) return;
    failed_ = true;  // the kernel may have dropped the pages that it could not write
    throw_errno(error, "sync " + path_);
  }

  void close() override {
    if (fd_ < 0) return;
    std::exception_ptr error;
    try {
      flush();
    } catch (...) {
      error = std::current_exception();
    }
    int closed = ::close(std::exchange(fd_, -1));
    if (error) std::rethrow_exception(error);
    if (closed != 0 && errno != EINTR) throw_last_errno("close", path_);
  }

 private:
  void check_usable(const char* operation) const {
    if (fd_ < 0) throw FailedPreconditionError(std::string(operation) + " " + path_ + ": the file is closed");
    if (failed_) throw FailedPreconditionError(std::string(operation) + " " + path_ + ": an earlier write failed");
  }

  void write(std::string_view data) {
    while (!data.empty()) {
      ssize_t count = retried([&] { return ::write(fd_, data.data(), data.size()); });
      if (count < 0) {
        failed_ = true;
        throw_last_errno("write", path_);
      }
      data.remove_prefix(count);
    }
  }

  int fd_;
  const std::string path_;
  std::string buffer_;
  bool failed_ = false;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixReadableFile() override { ::close(fd_); }

  uint64_t size() const override {
    struct stat info;
    if (::fstat(fd_, &info) != 0) throw_last_errno("stat", path_);
    return info.st_size;
  }

  size_t read(uint64_t offset, char* out, size_t count) const override {
    size_t done = 0;
    while (done < count) {
      ssize_t got = retried([&] { return ::pread(fd_, out + done, count - done, offset + done); });
      if (got < 0) throw_last_errno("read", path_);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  void read_batch(std::span<const ReadRequest> requests, const UsePart& use) const override {
    read_directly(*this, fd_, requests, use);
  }

 private:
  int fd_;
  const std::string path_;
};

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    return std::make_unique<PosixWritableFile>(create_or_throw(path, if_exists), path);
  }

  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override {
    return std::make_unique<DirectWriter>(create_or_throw(path, options.if_exists), path,
                                          DirectWriterOptions{.expected_bytes = options.expected_bytes});
  }

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    return std::make_unique<PosixReadableFile>(open_to_read(path), path);
  }

  bool exists(const std::string& path) override { return find_stat(path).has_value(); }

  bool is_directory(const std::string& path) override {
    const auto info = find_stat(path);
    return info && S_ISDIR(info->st_mode);
  }

  double modified_at(const std::string& path) override {
    auto info = stat_or_throw(path);
    return static_cast<double>(info.st_mtim.tv_sec) + static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
  }

  std::vector<std::string> list(const std::string& directory) override {
    std::error_code error;
    std::vector<std::string> names;
    const AboveStdio above;
    std::filesystem::directory_iterator it(directory, error), end;
    for (; !error && it != end; it.increment(error)) names.push_back(it->path().filename().string());
    if (error) throw_errno(error.value(), "list " + directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  // Or a power cut might take all that is in them: each new one's parent is synced, where this user may open it.
  void make_directories(const std::string& path) override {
    std::vector<std::string> parents;
    for (std::string each = path; !each.empty() && !exists(each); each = parents.back()) {
      parents.push_back(directory_name(each));
    }
    std::error_code error;
    if (!path.empty()) std::filesystem::create_directories(path, error);
    if (error) throw_errno(error.value(), "make directory " + path);
    for (const std::string& parent : parents) sync_if_possible(parent);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw_errno(errno, "rename " + from + " to " + to);
  }

  void link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) throw_errno(errno, "link " + from + " to " + to);
  }

  void remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0) throw_last_errno("remove", path);
  }

  void sync_directory(const std::string& path) override {
    int fd = open_or_throw("sync directory", path, O_RDONLY | O_DIRECTORY);
    const int error = sync_all(fd);
    ::close(fd);
    if (error != 0) throw_errno(error, "sync directory " + path);
  }

  uint64_t free_bytes(const std::string& path) override {
    struct statvfs info;
    if (::statvfs(path.c_str(), &info) != 0) throw_last_errno("statvfs", path);
    return uint64_t{info.f_bavail} * info.f_frsize;
  }

  FileLock::Attempt try_lock(const std::string& path) override { return try_flock(path); }

 private:
  void sync_if_possible(const std::string& directory) {
    try {
      sync_directory(directory);
    } catch (const Error&) {
    }
  }
};

}  // namespace

FileSystem& FileSystem::real() {
  static auto* const files = new PosixFileSystem;
  return *files;
}

}  // namespace longhaul

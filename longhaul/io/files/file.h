#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/io/lock/file_lock.h"

namespace longhaul {

// A file that is written from its start. Appended bytes survive a crash of the process after flush(), and a crash of
// the machine after sync(). The destructor closes the file and reports nothing, so call close(). One thread at a time
// may call.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(std::string_view data) = 0;

  // Like append(), but large pieces may be written without a copy: the bytes must stay in place, unchanged, until
  // sync() or close() has returned or the file is destroyed. If an owner is given, the file ensures this itself: it
  // keeps the owner until the bytes are written, and releases it on the calling thread.
  virtual void append_borrowed(std::string_view data, std::shared_ptr<const void> owner = nullptr) {
    static_cast<void>(owner);
    append(data);
  }

  virtual void flush() = 0;  // hands buffers to the kernel
  virtual void sync() = 0;   // ... and to the disk (fdatasync)
  virtual void close() = 0;
};

// A request for bytes of a file: `count` from `offset` on, into `out`. If `out` is null, they are only passed to the
// callback.
struct ReadRequest {
  uint64_t offset = 0;
  char* out = nullptr;
  size_t count = 0;
};

// Bytes of a request that have been read, starting at `begin`. They are in the request's `out`; if that is null, they
// are valid until the callback returns. With an error, `bytes` is empty, and some bytes from `begin` on could not be
// read.
struct ReadPart {
  size_t request = 0;  // its index
  size_t begin = 0;
  std::string_view bytes;
  std::exception_ptr error;
};

// A file that is read at offsets. Any thread may call.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;  // at the moment: the file may grow

  // Reads up to `count` bytes at `offset` into `out`. Returns the number read, which is smaller only at the end of the
  // file.
  virtual size_t read(uint64_t offset, char* out, size_t count) const = 0;

  // Reads all requests, several at a time where that is faster. Calls `use` on this thread for each part that has been
  // read, while others are still being read: in any order, each byte once. Bytes beyond the end of the file are
  // omitted. A read error is reported in its part. An exception from `use` ends the reading, and is rethrown once
  // nothing is being written to any `out`.
  using UsePart = std::function<void(const ReadPart&)>;
  virtual void read_batch(std::span<const ReadRequest> requests, const UsePart& use) const;
};

// The files of a machine. It is an interface, so that tests can make any operation fail (testing/faulty_file_system.h).
// Every error names the operation and the path: "create /x/y: Permission denied". Any thread may call.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  enum class IfExists { kTruncate, kFail };  // kFail: AlreadyExistsError (O_EXCL)
  virtual std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) = 0;

  // For a file that may become large. The options help to write it at the disk's speed, and do not affect its contents.
  struct LargeFileOptions {
    IfExists if_exists = IfExists::kTruncate;
    uint64_t expected_bytes = 0;  // that will be appended, 0: unknown; space is allocated for them, and once all are
                                  // there, no write waits for more
  };
  virtual std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) {
    return create(path, options.if_exists);
  }

  // Opens a regular file. InvalidArgumentError: it is something else, such as a named pipe, which could block.
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;

  // PermissionDeniedError: this user may not search a directory above it. Other errors: the system cannot look, for
  // example because a file server is down.
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_directory(const std::string& path) = 0;
  virtual double modified_at(const std::string& path) = 0;                  // seconds since 1970
  virtual std::vector<std::string> list(const std::string& directory) = 0;  // base names, sorted
  virtual void make_directories(const std::string& path) = 0;               // with all parents; no error if it exists
  virtual void rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual void link(const std::string& from, const std::string& to) = 0;    // hard link
  virtual void remove(const std::string& path) = 0;                         // a file or an empty directory
  virtual void sync_directory(const std::string& path) = 0;                 // makes names in it durable
  virtual uint64_t free_bytes(const std::string& path) = 0;                 // for this user, on the disk of `path`

  // Locks the file of that name, which is created if needed. Does not wait. By default, locks are not supported.
  virtual FileLock::Attempt try_lock(const std::string& /*path*/) { return {}; }

  // The POSIX file system. Never destroyed.
  static FileSystem& real();
};

// Returns the whole file. NotFoundError: it does not exist. ResourceExhaustedError: it is larger than `max_bytes`.
std::string read_file(FileSystem& files, const std::string& path, uint64_t max_bytes = uint64_t{1} << 31);

// Replaces the file so that after a crash at any moment it has its old or its new contents, intact: the new file is
// written under a temporary name in the same directory, synced and renamed, and the directory is synced. On an error
// the temporary file is removed.
void write_file_atomically(FileSystem& files, const std::string& path, std::string_view contents);

// Whether `name` is such a temporary name, made by this process.
bool is_own_temporary(std::string_view name);

// Paths as text. directory_name("a/b") is "a", directory_name("b") is "."; base_name("a/b") is "b"; join_path("a/",
// "b") is "a/b", and an absolute second part wins. strip_file_scheme("file:///x") is "/x".
std::string directory_name(std::string_view path);
std::string base_name(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);
std::string strip_file_scheme(std::string_view path);

}  // namespace longhaul

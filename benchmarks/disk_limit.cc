#include "benchmarks/disk_limit.h"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "benchmarks/bench.h"
#include "longhaul/io.h"

namespace longhaul::bench {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kBlock = size_t{16} << 20;
constexpr size_t kLarge = size_t{1} << 20;

void write_plainly(const FileContents& contents, const std::string& path) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  check(::write(file.fd(), contents.pages->data(), contents.size) == static_cast<ssize_t>(contents.size),
        "write " + path);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

void write_directly(const FileContents& contents, const std::string& path) {
  constexpr unsigned kInFlight = 4;
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT);
  check(::fallocate(file.fd(), 0, 0, static_cast<off_t>(contents.padded())) == 0, "make room for " + path);
  io_uring ring;
  check(io_uring_queue_init(kInFlight, &ring, 0) == 0, "measure the disk without io_uring");
  size_t next = 0, done = 0;
  for (size_t under_way = 0; next < contents.size || under_way > 0; --under_way) {
    for (; next < contents.size && under_way < kInFlight; ++under_way, next += kBlock) {
      const size_t count = std::min(kBlock, contents.padded() - next);
      io_uring_prep_write(io_uring_get_sqe(&ring), file.fd(), contents.pages->data() + next,
                          static_cast<unsigned>(count), next);
      io_uring_submit(&ring);
    }
    io_uring_cqe* cqe = nullptr;
    check(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res > 0, "write " + path);
    done += static_cast<size_t>(cqe->res);
    io_uring_cqe_seen(&ring, cqe);
  }
  io_uring_queue_exit(&ring);
  check(done == contents.padded() && ::ftruncate(file.fd(), static_cast<off_t>(contents.size)) == 0, "write " + path);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

}  // namespace

FileContents::FileContents(const std::filesystem::path& path)
    : name(path.filename()), size(std::filesystem::file_size(path)), pages(std::make_unique<FreshMemory>(padded())) {
  const std::string bytes = read_file(FileSystem::real(), path);
  std::memset(pages->data(), 0, padded());
  std::memcpy(pages->data(), bytes.data(), bytes.size());
}

size_t FileContents::padded() const {
  return (size + kPage) / kPage * kPage;
}

double bare_write_seconds(const std::vector<FileContents>& files, const std::string& directory) {
  return time_seconds([&] {
    for (const FileContents& file : files) {
      const std::string path = directory + "/" + file.name, temporary = path + ".new";
      (file.size >= kLarge ? write_directly : write_plainly)(file, temporary);
      std::filesystem::rename(temporary, path);
    }
    sync_file(directory);
  });
}

double direct_read_seconds(const std::string& directory, const std::string& start) {
  const std::unique_ptr<char, decltype(&std::free)> memory(static_cast<char*>(std::aligned_alloc(kPage, kBlock)),
                                                           &std::free);
  std::memset(memory.get(), 0, kBlock);
  double seconds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.path().filename().string().starts_with(start)) continue;
    seconds += time_seconds([&] {
      const Descriptor file(entry.path(), O_RDONLY | O_DIRECT);
      while (::read(file.fd(), memory.get(), kBlock) > 0) continue;
    });
  }
  return seconds;
}

void clear_directory(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) std::filesystem::remove(entry.path());
  ::sync();
}

}  // namespace longhaul::bench

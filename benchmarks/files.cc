#include "benchmarks/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace longhaul::bench {

ScratchDirectory::ScratchDirectory() : path_(std::filesystem::temp_directory_path() / "longhaul_bench.XXXXXX") {
  check(mkdtemp(path_.data()) != nullptr, "make " + path_);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Descriptor::Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  check(fd_ >= 0, "open " + path);
}

Descriptor::~Descriptor() {
  ::close(fd_);
}

void check(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("cannot " + what);
}

void sync_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

void make_cold(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  check(::fsync(file.fd()) == 0 && ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0,
        "drop from the cache: " + path);
}

}  // namespace longhaul::bench

#pragma once

#include <cstddef>
#include <string>

namespace longhaul::bench {

// A file that is open until the end of its scope. Errors are std::runtime_error, in all of this.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }

 private:
  const int fd_;
};

// New memory of the system's, in huge pages where it has them: direct reads and writes are fastest with those.
class FreshMemory {
 public:
  explicit FreshMemory(size_t bytes);
  ~FreshMemory();
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;
  char* data() const { return data_; }

 private:
  const size_t mapped_;
  void* const map_;
  char* data_;
};

void check(bool holds, const std::string& what);  // "cannot ..."
void sync_file(const std::string& path);
void make_cold(const std::string& path);  // nothing of the file is in the kernel's cache afterwards

}  // namespace longhaul::bench

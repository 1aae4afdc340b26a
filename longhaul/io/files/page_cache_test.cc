#include "longhaul/io/files/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

constexpr size_t kPageBytes = 4096, kPages = 64;
constexpr int64_t kTmpfs = 0x01021994;

bool is_in_memory(const std::string& directory) {
  struct statfs info;
  EXPECT_EQ(::statfs(directory.c_str(), &info), 0);
  return info.f_type == kTmpfs;
}

size_t cached_pages(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, kPages * kPageBytes, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> pages(kPages);
  EXPECT_EQ(::mincore(mapped, kPages * kPageBytes, pages.data()), 0);
  ::munmap(mapped, kPages * kPageBytes);
  ::close(fd);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1) != 0; }));
}

TEST(ForgetCached, TheNextReadOfWhatIsOnTheDiskIsFromTheDisk) {
  const testing::TemporaryDirectory directory;
  LONGHAUL_NEEDS("disk", !is_in_memory(directory.path()), directory.path() + " is in memory, and on no disk");
  const std::string path = directory.file("f"), contents(kPages * kPageBytes, 'x');
  write_file_atomically(FileSystem::real(), path, contents);
  EXPECT_EQ(cached_pages(path), kPages);
  forget_cached(path);
  EXPECT_EQ(cached_pages(path), 0u);
  EXPECT_EQ(read_file(FileSystem::real(), path), contents);
}

TEST(ForgetCached, WhatIsNoFileIsNoError) {
  forget_cached("/nowhere/f");
  forget_cached("/");
}

}  // namespace
}  // namespace longhaul

#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/files.h"

namespace longhaul::bench {

// What the disk can do, which checkpoints stand beside. Errors are std::runtime_error.

// A file's name and its bytes, in whole pages.
struct FileContents {
  explicit FileContents(const std::filesystem::path& path);
  size_t padded() const;

  std::string name;
  size_t size;
  std::unique_ptr<FreshMemory> pages;
};

// Seconds in which these files are written to the directory, each synced and renamed, with one sync of the directory at
// the end, by a program that knows their bytes. The large ones by 4 writes of 16 MiB at a time, past the kernel's
// cache, into room that was asked for before.
double bare_write_seconds(const std::vector<FileContents>& files, const std::string& directory);

// Seconds in which the files of the directory whose names begin so are read past the kernel's cache, one after another.
double direct_read_seconds(const std::string& directory, const std::string& start);

// Removes all files of the directory, and waits until the disk has nothing to do.
void clear_directory(const std::string& directory);

}  // namespace longhaul::bench

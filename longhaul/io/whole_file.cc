#include <fmt/format.h>

#include <random>

#include "longhaul/io/file.h"

namespace longhaul {

namespace {

// What such a name has before the second half of its number.
const std::string& mark_of_process() {
  static const std::string mark = fmt::format(".tmp{:08x}", std::random_device{}());
  return mark;
}

std::string temporary_name(const std::string& path) {
  return fmt::format("{}{}{:08x}", path, mark_of_process(), std::random_device{}());
}

void write_and_sync(FileSystem& files, const std::string& path, std::string_view contents) {
  auto file = files.create(path, FileSystem::IfExists::kFail);
  file->append(contents);
  file->sync();
  file->close();
}

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (const Error&) {
  }
}

}  // namespace

std::string read_file(FileSystem& files, const std::string& path, uint64_t max_bytes) {
  auto file = files.open(path);
  uint64_t size = file->size();
  if (size > max_bytes)
    throw ResourceExhaustedError(fmt::format("read {}: {} bytes, at most {} are read", path, size, max_bytes));
  std::string contents(size, '\0');
  contents.resize(file->read(0, contents.data(), contents.size()));
  return contents;
}

void write_file_atomically(FileSystem& files, const std::string& path, std::string_view contents) {
  std::string temporary = temporary_name(path);
  try {
    write_and_sync(files, temporary, contents);
    files.rename(temporary, path);
  } catch (...) {
    remove_quietly(files, temporary);
    throw;
  }
  files.sync_directory(directory_name(path));
}

bool is_own_temporary(std::string_view name) {
  constexpr size_t kDigitsAfter = 8;
  const size_t at = name.rfind(mark_of_process());
  return at != name.npos && at + mark_of_process().size() + kDigitsAfter == name.size();
}

}  // namespace longhaul

#include "longhaul/testing/memory_file_system.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul::testing {
namespace {

class MemoryFile : public ReadableFile {
 public:
  explicit MemoryFile(std::string contents) : contents_(std::move(contents)) {}

  uint64_t size() const override { return contents_.size(); }

  size_t read(uint64_t offset, char* out, size_t count) const override {
    if (offset >= contents_.size()) return 0;
    return contents_.copy(out, count, offset);
  }

 private:
  const std::string contents_;
};

}  // namespace

std::unique_ptr<ReadableFile> MemoryFileSystem::open(const std::string& path) {
  const auto file = files_.find(path);
  if (file == files_.end()) throw NotFoundError(fmt::format("open {}: no such file in memory", path));
  return std::make_unique<MemoryFile>(file->second);
}

bool MemoryFileSystem::is_directory(const std::string& path) {
  const std::string below = path + "/";
  const auto file = files_.lower_bound(below);
  return file != files_.end() && file->first.starts_with(below);
}

double MemoryFileSystem::modified_at(const std::string& path) {
  if (!exists(path)) throw NotFoundError(fmt::format("modified_at {}: no such file in memory", path));
  return 0;
}

std::vector<std::string> MemoryFileSystem::list(const std::string& directory) {
  const std::string below = directory + "/";
  std::vector<std::string> names;
  for (auto file = files_.lower_bound(below); file != files_.end() && file->first.starts_with(below); ++file) {
    const std::string name = file->first.substr(below.size(), file->first.find('/', below.size()) - below.size());
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

void MemoryFileSystem::refuse(const char* operation, const std::string& path) {
  throw UnimplementedError(fmt::format("{} {}: files in memory are only read", operation, path));
}

}  // namespace longhaul::testing

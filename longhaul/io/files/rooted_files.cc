#include "longhaul/io/files/rooted_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "longhaul/base/excerpt.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/files/resolved_path.h"

namespace longhaul {
namespace {

std::vector<std::string> resolved_roots(const std::vector<std::string>& roots) {
  std::vector<std::string> resolved;
  for (const std::string& root : roots) {
    if (!root.starts_with('/')) {
      throw InvalidArgumentError(fmt::format(
          "file_roots: \"{}\" is relative, and would mean another directory wherever the server is started: "
          "write it from the root on, such as \"{}\"",
          excerpt(root), excerpt(spelled_directory(root))));
    }
    resolved.push_back(resolved_path(root));
  }
  return resolved;
}

bool has_part(std::string_view path, std::string_view wanted) {
  while (true) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == wanted) return true;
    if (slash == path.npos) return false;
    path.remove_prefix(slash + 1);
  }
}

bool is_below(std::string_view path, std::string_view root) {
  if (root == "/") return path.size() > 1;
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

}  // namespace

RootedFiles::RootedFiles(FileSystem& inner, const std::vector<std::string>& roots)
    : inner_(inner), roots_(resolved_roots(roots)) {}

void RootedFiles::refuse(const char* operation, const std::string& path, const std::string& why) const {
  const std::string allowed =
      roots_.empty() ? "no directory is" : fmt::format("only {} and what is below may be", fmt::join(roots_, ", "));
  throw PermissionDeniedError(
      fmt::format("{} {}: {}; {} used by operations of this server. Add a directory to its option file_roots, such as "
                  ".file_roots = {{\"/data\"}}, if its clients may read and write everything in it",
                  operation, excerpt(path), why, allowed));
}

void RootedFiles::check_spelling(const char* operation, const std::string& path) const {
  if (!path.starts_with('/')) refuse(operation, path, "the path is relative");
  if (path.find('\0') != path.npos) refuse(operation, path, "the path has a byte 0");
  if (has_part(path, "..")) refuse(operation, path, "the path has a part \"..\"");
}

// Where the path leads.
std::string RootedFiles::followed(const char* operation, const std::string& path) const {
  check_spelling(operation, path);
  std::string resolved = resolved_path(path);
  const auto holds = [&](const std::string& root) { return resolved == root || is_below(resolved, root); };
  if (std::any_of(roots_.begin(), roots_.end(), holds)) return resolved;
  const bool by_link = resolved != spelled_directory(path);
  refuse(operation, path, by_link ? "a link leads to " + excerpt(resolved) : "it is outside of what may be used");
}

// The name that the operation works on, link or not: a root itself is none.
std::string RootedFiles::entry(const char* operation, const std::string& path) const {
  check_spelling(operation, path);
  if (path.find_last_not_of('/') == path.npos || base_name(path) == ".") refuse(operation, path, "it is no entry");
  std::string resolved = resolved_entry(path);
  const auto holds = [&](const std::string& root) { return is_below(resolved, root); };
  if (std::any_of(roots_.begin(), roots_.end(), holds)) return resolved;
  refuse(operation, path, "it leads to " + excerpt(resolved));
}

// O_EXCL does not follow a link; it finds that something of that name is there.
std::string RootedFiles::to_create(const std::string& path, IfExists if_exists) const {
  return if_exists == IfExists::kFail ? entry("create", path) : followed("create", path);
}

std::unique_ptr<WritableFile> RootedFiles::create(const std::string& path, IfExists if_exists) {
  return inner_.create(to_create(path, if_exists), if_exists);
}

std::unique_ptr<WritableFile> RootedFiles::create_large(const std::string& path, const LargeFileOptions& options) {
  return inner_.create_large(to_create(path, options.if_exists), options);
}

std::unique_ptr<ReadableFile> RootedFiles::open(const std::string& path) {
  return inner_.open(followed("open", path));
}

bool RootedFiles::exists(const std::string& path) {
  return inner_.exists(followed("look for", path));
}

bool RootedFiles::is_directory(const std::string& path) {
  return inner_.is_directory(followed("look at", path));
}

double RootedFiles::modified_at(const std::string& path) {
  return inner_.modified_at(followed("look at", path));
}

std::vector<std::string> RootedFiles::list(const std::string& directory) {
  return inner_.list(followed("list", directory));
}

void RootedFiles::make_directories(const std::string& path) {
  inner_.make_directories(followed("make directory", path));
}

void RootedFiles::rename(const std::string& from, const std::string& to) {
  inner_.rename(entry("rename", from), entry("rename to", to));
}

void RootedFiles::link(const std::string& from, const std::string& to) {
  inner_.link(entry("link", from), entry("link as", to));
}

void RootedFiles::remove(const std::string& path) {
  inner_.remove(entry("remove", path));
}

void RootedFiles::sync_directory(const std::string& path) {
  inner_.sync_directory(followed("sync directory", path));
}

uint64_t RootedFiles::free_bytes(const std::string& path) {
  return inner_.free_bytes(followed("ask for the space at", path));
}

FileLock::Attempt RootedFiles::try_lock(const std::string& path) {
  return inner_.try_lock(followed("lock", path));
}

}  // namespace longhaul

#include "longhaul/io/files/canonical_directory.h"

#include <fmt/format.h>

#include <filesystem>

#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

std::filesystem::path absolute_path(const std::string& directory) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(strip_file_scheme(directory), error);
  if (error) throw_errno(error.value(), "get the absolute path of " + directory);
  return path;
}

std::string without_last_slash(std::string name) {
  if (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

}  // namespace

std::string absolute_directory(std::string_view directory) {
  std::string path = strip_file_scheme(directory);
  if (path.empty() || path.starts_with('/')) return path;
  if (path == "~" || path.starts_with("~/")) {
    throw InvalidArgumentError(fmt::format(
        "the directory is '{0}': only a shell expands '~'. Write the whole path, or './{0}' for one of that name",
        path));
  }
  const bool may_leave_links = path.find("..") != path.npos;
  return may_leave_links ? absolute_path(path).string() : spelled_directory(path);
}

std::string canonical_directory(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(absolute_path(directory), error);
  return error ? spelled_directory(directory) : without_last_slash(resolved.string());
}

std::string resolved_directory(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(absolute_path(directory), error);
  if (error) throw_errno(error.value(), "resolve the links of " + directory);
  return without_last_slash(resolved.string());
}

std::string spelled_directory(const std::string& directory) {
  return without_last_slash(absolute_path(directory).lexically_normal().string());
}

}  // namespace longhaul

#include "longhaul/io/files/file.h"

namespace longhaul {

std::string directory_name(std::string_view path) {
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  size_t last = path.find_last_not_of('/', slash);
  return last == std::string_view::npos ? "/" : std::string(path.substr(0, last + 1));
}

std::string base_name(std::string_view path) {
  size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

std::string strip_file_scheme(std::string_view path) {
  constexpr std::string_view kScheme = "file://";
  if (path.starts_with(kScheme)) path.remove_prefix(kScheme.size());
  return std::string(path);
}

}  // namespace longhaul

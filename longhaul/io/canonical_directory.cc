#include "longhaul/io/canonical_directory.h"

#include <filesystem>

#include "longhaul/io/file.h"

namespace longhaul {

std::string canonical_directory(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(strip_file_scheme(directory), error);
  if (error) throw_errno(error.value(), "find the directory of " + directory);
  std::string name = std::filesystem::weakly_canonical(path, error).string();
  if (error) name = path.lexically_normal().string();
  if (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

}  // namespace longhaul

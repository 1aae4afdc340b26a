#include "longhaul/testing/temporary_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "longhaul/base/error.h"

namespace longhaul::testing {

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "longhaul-XXXXXX").string();
  if (!mkdtemp(path_.data())) throw_errno(errno, "make temporary directory " + path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace longhaul::testing

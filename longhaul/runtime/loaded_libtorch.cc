#include "longhaul/runtime/loaded_libtorch.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <regex>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

std::string minor_version_of(const std::string& version) {
  std::smatch match;
  return std::regex_search(version, match, std::regex("^\\d+\\.\\d+")) ? match[0].str() : "";
}

// The library that has at::show_config(): libtorch_cpu.so.
std::string file_of_libtorch() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void*>(&at::show_config), &info) != 0 && info.dli_fname != nullptr;
  return found ? info.dli_fname : "a place that is not known";
}

}  // namespace

std::string wrong_libtorch(const std::string& compiled_for, const std::string& torch_config, const std::string& file) {
  std::smatch match;
  if (!std::regex_search(torch_config, match, std::regex("TORCH_VERSION=([^,\\s]+)"))) return "";
  const std::string loaded = match[1].str();
  if (minor_version_of(loaded) == minor_version_of(compiled_for)) return "";
  return fmt::format(
      "this program was compiled for libtorch {}, and has loaded libtorch {} from {}: look at LD_LIBRARY_PATH and "
      "LD_PRELOAD, or build it again",
      compiled_for, loaded, file);
}

void require_compiled_libtorch() {
  static const std::string wrong = wrong_libtorch(TORCH_VERSION, at::show_config(), file_of_libtorch());
  if (!wrong.empty()) throw FailedPreconditionError(wrong);
}

}  // namespace longhaul

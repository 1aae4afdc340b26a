#include "longhaul/trainer/checked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

// longhaul/resume_check/supervised_run.cc sets them.
constexpr char kDirectoryVariable[] = "LONGHAUL_RESUME_CHECK_DIR";
constexpr char kStopVariable[] = "LONGHAUL_RESUME_CHECK_STOP_STEP";
constexpr size_t kLongestName = 200;  // of a folder: file systems have 255 bytes

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

std::optional<CheckedRun> CheckedRun::of_environment() {
  const char* const directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  return CheckedRun(directory, std::getenv(kStopVariable));
}

CheckedRun::CheckedRun(std::string directory, const char* stop_step) : directory_(normal(directory)) {
  if (stop_step == nullptr) return;
  const char* const end = stop_step + std::strlen(stop_step);
  const auto [stopped, error] = std::from_chars(stop_step, end, stop_step_);
  if (error == std::errc() && stopped == end && stop_step_ >= 0) return;
  throw InvalidArgumentError(fmt::format("{} is '{}': want the number of a step", kStopVariable, stop_step));
}

std::string CheckedRun::place_of(const std::string& directory) const {
  std::string name = normal(directory);
  if (name == directory_ || name.starts_with(directory_ + "/")) return directory;
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.size() > kLongestName) name.erase(0, name.size() - kLongestName);
  return directory_ + "/" + (name == "." || name == ".." ? "run" : name);
}

}  // namespace longhaul

#include "longhaul/host/resource_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

const std::string& text_attr(const Operation& op, const char* name, const std::string& otherwise) {
  const std::string* value = op.find_attr<std::string>(name);
  return value == nullptr || value->empty() ? otherwise : *value;
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_container_name(const std::string& name) {
  if (name.empty() || name[0] == '-' || name[0] == '/') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '/'; });
}

}  // namespace

// A job's name may have underscores, so the default container is not checked.
ResourceName resource_name(const Operation& handle, const std::string& default_container) {
  static const std::string kNone;
  const std::string& shared_name = text_attr(handle, "shared_name", kNone);
  ResourceName found{text_attr(handle, "container", default_container),
                     shared_name.empty() ? handle.name() : shared_name};
  if (found.container != default_container && !is_container_name(found.container)) {
    throw InvalidArgumentError(
        fmt::format("{} ({}): container contains invalid characters: '{}'. Use letters, digits, '.', '-' and '/', with "
                    "a letter, a digit or '.' first",
                    handle.name(), handle.type(), found.container));
  }
  if (shared_name.starts_with('_')) {
    throw InvalidArgumentError(fmt::format("{} ({}): shared_name cannot start with '_', but is '{}'", handle.name(),
                                           handle.type(), found.name));
  }
  return found;
}

bool is_among(const std::string& container, const std::vector<std::string>& containers) {
  return containers.empty() || std::find(containers.begin(), containers.end(), container) != containers.end();
}

}  // namespace longhaul

#include "longhaul/graph/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw InvalidArgumentError(
      fmt::format("device \"{}\": want /job:NAME, /replica:N, /task:N, /device:TYPE:N, /cpu:N or /gpu:N", text));
}

int parse_number(std::string_view digits, std::string_view text) {
  int number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || result.ec != std::errc() || result.ptr != digits.data() + digits.size() || number < 0)
    refuse(text);
  return number;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

void parse_type_and_index(std::string_view value, std::string_view text, DeviceSpec* spec) {
  const size_t colon = value.find(':');
  spec->type = upper(value.substr(0, colon));
  if (spec->type.empty()) refuse(text);
  if (colon == std::string_view::npos) return;
  const std::string_view index = value.substr(colon + 1);
  if (index != "*") spec->index = parse_number(index, text);
}

void parse_part(std::string_view part, std::string_view text, DeviceSpec* spec) {
  const size_t colon = part.find(':');
  const std::string_view key = part.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? "" : part.substr(colon + 1);
  if (key == "job" && !value.empty()) {
    spec->job = value;
  } else if (key == "replica") {
    spec->replica = parse_number(value, text);
  } else if (key == "task") {
    spec->task = parse_number(value, text);
  } else if (key == "device") {
    parse_type_and_index(value, text, spec);
  } else if (upper(key) == "CPU" || upper(key) == "GPU") {
    parse_type_and_index(part, text, spec);
  } else {
    refuse(text);
  }
}

// Where only one of them is given, or both are equal.
template <typename Part>
void combine(Part DeviceSpec::* part, std::string_view parts, const DeviceSpec& a, const DeviceSpec& b,
             DeviceSpec* combined) {
  if (a.*part != Part() && b.*part != Part() && a.*part != b.*part) {
    throw InvalidArgumentError(
        fmt::format("Cannot merge devices with incompatible {}: '{}' and '{}'", parts, a.to_string(), b.to_string()));
  }
  combined->*part = a.*part != Part() ? a.*part : b.*part;
}

}  // namespace

DeviceSpec DeviceSpec::parse(std::string_view text) {
  DeviceSpec spec;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest.front() != '/') refuse(text);
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    parse_part(part, text, &spec);
    rest.remove_prefix(part.size());
  }
  return spec;
}

DeviceSpec DeviceSpec::merged_with(const DeviceSpec& inner) const {
  DeviceSpec merged = *this;
  if (!inner.job.empty()) merged.job = inner.job;
  if (inner.replica) merged.replica = inner.replica;
  if (inner.task) merged.task = inner.task;
  if (!inner.type.empty()) merged.type = inner.type;
  if (inner.index) merged.index = inner.index;
  return merged;
}

DeviceSpec DeviceSpec::combined_with(const DeviceSpec& other) const {
  DeviceSpec combined;
  combine(&DeviceSpec::job, "jobs", *this, other, &combined);
  combine(&DeviceSpec::replica, "replicas", *this, other, &combined);
  combine(&DeviceSpec::task, "tasks", *this, other, &combined);
  combine(&DeviceSpec::type, "types", *this, other, &combined);
  combine(&DeviceSpec::index, "ids", *this, other, &combined);
  return combined;
}

bool DeviceSpec::matches(const DeviceSpec& full) const {
  return full.merged_with(*this) == full;
}

DeviceSpec DeviceSpec::without_type() const {
  return {.job = job, .replica = replica, .task = task};
}

std::string DeviceSpec::to_string() const {
  std::string text;
  if (!job.empty()) text += "/job:" + job;
  if (replica) text += fmt::format("/replica:{}", *replica);
  if (task) text += fmt::format("/task:{}", *task);
  if (!type.empty()) text += fmt::format("/device:{}:{}", type, index ? std::to_string(*index) : "*");
  return text;
}

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace longhaul::console {

using Json = nlohmann::ordered_json;

// What a command of the program `longhaul` has found: for people, and the same for programs.
struct Report {
  std::string text{};          // lines
  Json json = Json::object();  // docs/guide/command_json.md
  bool is_fine = true;         // false: something is wrong, which the text says; exit status 1
};

// The text of a report for programs, with a line break at its end. Valid UTF-8 whatever is in it: bytes that are none
// are replaced by U+FFFD. NaN and infinities, which JSON lacks, become null.
std::string json_text(const Json& json);
// The same on one line, for reports of several.
std::string json_line(const Json& json);

// {"format": 1, "command": "ls"}: how each report begins.
Json json_of(const char* command);

template <typename Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

// Called while bytes are read: how many of all. An exception ends the command.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace longhaul::console

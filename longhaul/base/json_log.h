#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "longhaul/base/log.h"

namespace longhaul {

// What a line of the log in JSON has besides the members of each.
struct LogMember {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

// The line of this thread, now, with a line break at its end: valid JSON in valid UTF-8, whatever the message is, on
// one line (docs/guide/operating.md).
std::string json_log_line(LogLevel level, std::string_view message, const LogPlace& place = {},
                          const std::vector<LogMember>& members = {});

// Writes that line to stderr, whatever the format and the sink of the log are, unless its level is too low. Lines of
// several threads never mix. That stderr cannot be written costs the lines alone; the next one that is written tells
// how many ("lost_lines"). Any thread.
void write_json_line(LogLevel level, std::string_view message, const std::vector<LogMember>& members = {},
                     const LogPlace& place = {});

// "longhaul/base/log.cc:12"; "": not known.
std::string place_text(const LogPlace& place);

}  // namespace longhaul

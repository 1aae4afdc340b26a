#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/proto/summary.pb.h"

// Shared by the functions that make summaries.
namespace longhaul::summary_internal {

inline proto::Summary::Value* add_value(proto::Summary& summary, std::string_view tag) {
  auto* value = summary.add_value();
  value->set_tag(std::string(tag));
  return value;
}

[[noreturn]] inline void refuse(std::string_view tag, const std::string& why) {
  throw InvalidArgumentError(fmt::format("summary {}: {}", tag, why));
}

inline void check_max_outputs(std::string_view tag, int64_t max_outputs) {
  if (max_outputs < 1) refuse(tag, fmt::format("max_outputs must be at least 1, not {}", max_outputs));
}

// The tag of output `i` of a batch; `kind` is "image" or "audio".
inline std::string output_tag(std::string_view tag, std::string_view kind, int64_t i, int64_t max_outputs) {
  return max_outputs == 1 ? fmt::format("{}/{}", tag, kind) : fmt::format("{}/{}/{}", tag, kind, i);
}

}  // namespace longhaul::summary_internal

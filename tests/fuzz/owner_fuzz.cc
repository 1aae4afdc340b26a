// The text of a `chief.owner` file. What was parsed can be described, written, and parsed again, as the same but for
// the last digits of its times. Its limit is one.
#include <cmath>
#include <optional>

#include "longhaul/io/lock/owner_record.h"
#include "tests/fuzz/quiet.h"

namespace longhaul {
namespace {

std::optional<OwnerRecord> parse(const uint8_t* data, size_t size) {
  try {
    return parse_owner({reinterpret_cast<const char*>(data), size}, "chief.owner");
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool are_near(double a, double b) {
  return std::abs(a - b) < 0.01;
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  const auto owner = parse(data, size);
  if (!owner) return 0;
  OwnerRecord again = parse_owner(format_owner(*owner), "chief.owner");
  if (describe(*owner).empty() || !is_owner_limit(owner->limit)) __builtin_trap();
  if (!are_near(owner->since, again.since) || !are_near(owner->heartbeat, again.heartbeat)) __builtin_trap();
  again.since = owner->since;
  again.heartbeat = owner->heartbeat;
  if (*owner != again) __builtin_trap();
  return 0;
}

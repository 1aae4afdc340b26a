#include "longhaul/testing/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "longhaul/base/error.h"

namespace longhaul::testing {
namespace {

using Kind = PlannedFault::Kind;
using FaultedCall = PlannedFault::Operation;

// In the order of the enumerations.
constexpr std::array<std::string_view, 6> kKinds{"kill", "torn", "enospc", "eio", "slow", "flip"};
constexpr std::array<std::string_view, 10> kOperations{"any",  "create", "write",          "sync", "rename",
                                                       "link", "remove", "sync_directory", "open", "read"};
constexpr uint64_t kMostMilliseconds = 60'000;

class FaultText {
 public:
  explicit FaultText(std::string_view text) : whole_(text), rest_(text) {}

  PlannedFault parse() {
    PlannedFault fault;
    fault.kind = static_cast<Kind>(word(kKinds, "a kind of fault"));
    expect('@');
    fault.operation = static_cast<FaultedCall>(word(kOperations, "an operation"));
    if (take('(')) fault.name_part = until(')');
    expect(':');
    fault.first = fault.last = number();
    if (take('-')) fault.last = number();
    if (take('+')) fault.last = UINT64_MAX;
    if (take('=')) fault.delay = Seconds(static_cast<double>(number()) / 1000);
    check(fault);
    return fault;
  }

 private:
  void check(const PlannedFault& fault) const {
    if (!rest_.empty()) fail("the end");
    if (fault.first == 0 || fault.last < fault.first) fail("operation numbers that start at 1");
    if (fault.kind == Kind::kTorn && fault.operation != FaultedCall::kWrite)
      fail("\"write\", because only writes can be torn");
    const bool has_bytes = fault.operation == FaultedCall::kWrite || fault.operation == FaultedCall::kRead;
    if (fault.kind == Kind::kFlip && !has_bytes) fail("\"write\" or \"read\", because other operations have no bits");
    const bool has_delay = fault.delay > Seconds{0} && fault.delay * 1000 <= Seconds(kMostMilliseconds);
    if ((fault.kind == Kind::kSlow) != (fault.delay > Seconds{0}) || (fault.kind == Kind::kSlow && !has_delay)) {
      fail("a time (\"=MILLISECONDS\", up to a minute) for \"slow\", and for no other fault");
    }
  }

  template <size_t n>
  size_t word(const std::array<std::string_view, n>& words, std::string_view what) {
    const std::string_view found = rest_.substr(0, rest_.find_first_of("@(:"));
    const auto it = std::find(words.begin(), words.end(), found);
    if (it == words.end()) fail(fmt::format("{}: {}", what, fmt::join(words, ", ")));
    rest_.remove_prefix(found.size());
    return static_cast<size_t>(it - words.begin());
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("\"{}\"", c));
  }
  std::string until(char c) {
    const size_t end = rest_.find(c);
    if (end == rest_.npos) fail(fmt::format("\"{}\"", c));
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  uint64_t number() {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) fail("a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  [[noreturn]] void fail(std::string_view wanted) const {
    throw InvalidArgumentError(
        fmt::format("the fault \"{}\" is malformed at \"{}\": expected {}", whole_, rest_, wanted));
  }

  const std::string_view whole_;
  std::string_view rest_;
};

}  // namespace

std::vector<PlannedFault> parse_fault_plan(std::string_view text) {
  std::vector<PlannedFault> faults;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    faults.push_back(FaultText(text.substr(0, comma)).parse());
    if (comma == text.size()) return faults;
    text.remove_prefix(comma + 1);
  }
}

std::string to_string(const PlannedFault& fault) {
  std::string text =
      fmt::format("{}@{}", kKinds[static_cast<size_t>(fault.kind)], kOperations[static_cast<size_t>(fault.operation)]);
  if (!fault.name_part.empty()) text += fmt::format("({})", fault.name_part);
  text += fmt::format(":{}", fault.first);
  if (fault.last == UINT64_MAX) {
    text += '+';
  } else if (fault.last != fault.first) {
    text += fmt::format("-{}", fault.last);
  }
  if (fault.delay > Seconds{0}) text += fmt::format("={:.0f}", fault.delay.count() * 1000);
  return text;
}

}  // namespace longhaul::testing

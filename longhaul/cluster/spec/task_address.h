#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// Where a task listens: "worker0.example:2222", "10.0.0.3:2222", "[fe80::1]:2222". The port 0 lets the system choose
// one, so that only a server on its own can have it.
struct TaskAddress {
  std::string host;  // in lower case, an IPv6 address without its brackets
  int port = 0;

  // InvalidArgumentError 'Could not interpret "10.0.0.3" as a host-port pair: ...': the text is none of these. Names
  // are not looked up.
  static TaskAddress parse(std::string_view text);

  std::string to_string() const;
  bool operator==(const TaskAddress&) const = default;
};

}  // namespace longhaul

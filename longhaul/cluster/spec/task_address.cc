#include "longhaul/cluster/spec/task_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

constexpr size_t kLongestHost = 253;  // of a DNS name
constexpr int kLastPort = 65535;

[[noreturn]] void refuse_address(std::string_view text, std::string_view why) {
  throw InvalidArgumentError(fmt::format("Could not interpret \"{}\" as a host-port pair: {}", excerpt(text), why));
}

int parse_port(std::string_view digits, std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_number = !digits.empty() && std::isdigit(static_cast<unsigned char>(digits[0])) != 0 &&
                         end == digits.data() + digits.size();
  if (!is_number || error != std::errc() || port > kLastPort) {
    refuse_address(text, fmt::format("the port must be a number from 0 to {}", kLastPort));
  }
  return port;
}

bool is_host_letter(unsigned char c) {
  return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
}

bool is_ipv6_letter(unsigned char c) {
  return std::isxdigit(c) != 0 || c == ':' || c == '.';
}

// A zone ("%eth0") may follow: it is the name of an interface.
bool is_ipv6(std::string_view host) {
  const std::string_view address = host.substr(0, host.find('%'));
  const std::string_view zone = host.substr(address.size());
  return address.find(':') != address.npos && std::all_of(address.begin(), address.end(), is_ipv6_letter) &&
         (zone.empty() || (zone.size() > 1 && std::all_of(zone.begin() + 1, zone.end(), is_host_letter)));
}

void check_host(std::string_view host, std::string_view text) {
  if (host.empty()) refuse_address(text, "there is no host before the port");
  if (host.size() > kLongestHost) refuse_address(text, fmt::format("a host has at most {} letters", kLongestHost));
  if (host.find('/') != host.npos) refuse_address(text, "it stands without a scheme or path");
  if (host.find(':') != host.npos) refuse_address(text, "an IPv6 address stands in brackets, as in [::1]:2222");
  if (!std::all_of(host.begin(), host.end(), is_host_letter)) {
    refuse_address(text, "a host has letters, digits, '.', '-' and '_' only");
  }
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

}  // namespace

TaskAddress TaskAddress::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.ends_with(']')) refuse_address(text, "want host:port");
  std::string_view host = text.substr(0, colon);
  const int port = parse_port(text.substr(colon + 1), text);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.size() > kLongestHost || !is_ipv6(host)) refuse_address(text, "in brackets stands an IPv6 address");
  } else {
    check_host(host, text);
  }
  return {lower_case(host), port};
}

std::string TaskAddress::to_string() const {
  const bool in_brackets = host.find(':') != host.npos;
  return in_brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace longhaul

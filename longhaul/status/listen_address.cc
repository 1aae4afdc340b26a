#include "longhaul/status/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr char kExamples[] = "\"127.0.0.1:8080\", \"[::1]:8080\", \"localhost:0\" or \"0.0.0.0:9090\"";

[[noreturn]] void refuse_address(const std::string& option, const std::string& text, const std::string& why) {
  throw InvalidArgumentError(fmt::format("{} is \"{}\", {}: it must be like {}", option, text, why, kExamples));
}

std::string without_brackets(const std::string& host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

std::optional<int> parse_port(const std::string& digits) {
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (error != std::errc() || rest != end || port < 0 || port > 65535) return std::nullopt;
  return port;
}

// A zero byte would end it for inet_pton(), whatever follows.
bool is_address(int family, const std::string& host, void* address) {
  return host.find('\0') == host.npos && inet_pton(family, host.c_str(), address) == 1;
}

bool set_ipv4(const std::string& host, ListenAddress& address) {
  sockaddr_in in{};
  if (!is_address(AF_INET, host, &in.sin_addr)) return false;
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<uint16_t>(address.port));
  address.is_loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  std::memcpy(&address.socket_address, &in, sizeof in);
  address.size = sizeof in;
  return true;
}

bool set_ipv6(const std::string& host, ListenAddress& address) {
  sockaddr_in6 in{};
  if (!is_address(AF_INET6, host, &in.sin6_addr)) return false;
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(static_cast<uint16_t>(address.port));
  address.is_loopback = IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
  std::memcpy(&address.socket_address, &in, sizeof in);
  address.size = sizeof in;
  return true;
}

}  // namespace

bool is_numeric_host(const std::string& host) {
  ListenAddress ignored;
  return set_ipv4(host, ignored) || set_ipv6(without_brackets(host), ignored);
}

ListenAddress parse_listen_address(const std::string& text, const std::string& option) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) refuse_address(option, text, "without a port");
  const std::string given = text.substr(0, colon);
  const std::optional<int> port = parse_port(text.substr(colon + 1));
  if (!port) refuse_address(option, text, "whose port is not a number from 0 to 65535");
  ListenAddress address;
  address.port = *port;
  address.host = given == "localhost" ? "127.0.0.1" : without_brackets(given);
  const bool is_bracketed = address.host != given;
  if (address.host.find(':') != address.host.npos && !is_bracketed) {
    refuse_address(option, text, "an address of IPv6 without brackets");
  }
  if (!set_ipv4(address.host, address) && !set_ipv6(address.host, address)) {
    refuse_address(option, text, "whose host is not an address of digits");
  }
  return address;
}

std::string page_url(const ListenAddress& address, int port) {
  if (address.host == "0.0.0.0") return fmt::format("http://127.0.0.1:{}/", port);
  if (address.host == "::") return fmt::format("http://[::1]:{}/", port);
  const bool is_ipv6 = address.socket_address.ss_family == AF_INET6;
  return fmt::format("http://{}:{}/", is_ipv6 ? "[" + address.host + "]" : address.host, port);
}

}  // namespace longhaul

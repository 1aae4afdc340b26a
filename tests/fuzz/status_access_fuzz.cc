// Who may call a route: a byte of flags (on loopback, with a token, which access); a name that is allowed, the token,
// the headers Host, Origin and Sec-Fetch-Site, each with its length, two bytes, before it; then the header
// Authorization. Whatever they are, a refusal is a short text, and nobody gets in who must not.
#include <functional>

#include "longhaul/status/status_access.h"
#include "tests/fuzz/input.h"

namespace longhaul {
namespace {

struct Door {
  bool is_loopback = false, has_token = false;
  HttpAccess access = HttpAccess::kProbe;
  std::string allowed{}, token{};
};

std::string lower_text(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// A name that a web site can give to another machine is known only if it is allowed. The readings here are as simple as
// can be, and may take for known what is not.
bool may_be_known(const std::string& host, const std::string& allowed) {
  const std::string name = lower_text(host.substr(0, host.rfind(':')));
  if (name.find_first_not_of("0123456789abcdef:.[]") == name.npos) return true;
  const auto is_name = [&](const std::string& other) { return name == other || name == other + "."; };
  return is_name("localhost") || is_name(lower_text(allowed));
}

bool has_token(const std::string& authorization, const std::string& token) {
  if (token.empty()) return false;
  if (lower_text(authorization.substr(0, 7)) == "bearer ") return authorization.substr(7) == token;
  return lower_text(authorization.substr(0, 6)) == "basic " && token_of(authorization) == token;
}

bool is_own_page(const HttpRequest& request) {
  const std::string& origin = request.origin;
  const std::string& site = request.fetch_site;
  return (origin.empty() || origin == "http://" + request.host || origin == "https://" + request.host) &&
         (site.empty() || site == "same-origin" || site == "none");
}

bool may_enter(const Door& door, const HttpRequest& request) {
  if (door.access == HttpAccess::kProbe) return true;
  if (!may_be_known(request.host, door.allowed)) return false;
  if (door.access == HttpAccess::kMetric || (door.access == HttpAccess::kRead && door.is_loopback)) return true;
  if (door.access == HttpAccess::kChange && !is_own_page(request)) return false;
  return door.has_token && has_token(request.authorization, door.token);
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input in(data, size);
  const uint8_t flags = in.byte();
  Door door{.is_loopback = (flags & 1) != 0,
            .has_token = (flags & 2) != 0,
            .access = static_cast<HttpAccess>(flags >> 2 & 3)};
  door.allowed = in.counted_bytes();
  if (door.allowed.empty() || door.allowed.find_first_of("/: \t") != std::string::npos) door.allowed = "node";
  door.token = in.counted_bytes();
  HttpRequest request{.method = "POST", .path = "/stop"};
  request.host = in.counted_bytes();
  request.origin = in.counted_bytes();
  request.fetch_site = in.counted_bytes();
  request.authorization = in.rest();

  std::function<bool(std::string_view)> accepts;
  if (door.has_token) accepts = [&](std::string_view token) { return token == door.token; };
  const StatusAccess access(door.is_loopback, {door.allowed}, accepts);
  const auto refusal = access.refusal(request, door.access);
  if (!refusal && !may_enter(door, request)) __builtin_trap();
  if (refusal && door.access == HttpAccess::kProbe) __builtin_trap();
  if (refusal) {
    const bool is_known_status = refusal->status == 401 || refusal->status == 403 || refusal->status == 421;
    if (!is_known_status || refusal->body->size() > 2000 || !refusal->body->ends_with('\n')) __builtin_trap();
  }
  if (token_of("Bearer " + door.token) != door.token) __builtin_trap();
  return 0;
}

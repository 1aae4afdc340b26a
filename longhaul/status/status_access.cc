#include "longhaul/status/status_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "longhaul/base/base64.h"
#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/credentials/token_file.h"

namespace longhaul {
namespace {

char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower_text(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), lower_letter);
  return text;
}

// "[::1]:8080" is "[::1]", "trainer.example.org.:80" is "trainer.example.org".
std::string host_alone(const std::string& header) {
  const size_t bracket = header.rfind(']');
  const size_t colon = header.rfind(':');
  std::string host = header;
  if (colon != header.npos && (bracket == header.npos || colon > bracket)) host = header.substr(0, colon);
  if (host.ends_with('.')) host.pop_back();
  return lower_text(host);
}

std::function<bool(std::string_view)> token_check(const std::string& path) {
  if (path.empty()) return nullptr;
  const auto file = std::make_shared<TokenFile>(path, Clock::real());
  return [file](std::string_view token) { return file->accepts(token); };
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.size() > word.size() && text[word.size()] == ' ' &&
         std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) { return a == lower_letter(b); });
}

}  // namespace

HttpReply text_reply(int status, std::string text) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(text))};
}

std::string token_of(std::string_view authorization) {
  if (begins_with_word(authorization, "bearer")) return std::string(authorization.substr(7));
  if (!begins_with_word(authorization, "basic")) return "";
  const std::string both = decode_base64(authorization.substr(6));
  const size_t colon = both.find(':');
  return colon == both.npos ? "" : both.substr(colon + 1);
}

StatusAccess::StatusAccess(bool is_loopback, std::vector<std::string> allowed_hosts,
                           std::function<bool(std::string_view)> accepts, AccessNames names)
    : is_loopback_(is_loopback),
      allowed_hosts_(std::move(allowed_hosts)),
      accepts_(std::move(accepts)),
      names_(std::move(names)) {}

// A web site can make its own name lead to this machine (DNS rebinding), but not an address of digits.
bool StatusAccess::is_known_host(const std::string& host) const {
  const std::string name = host_alone(host);
  if (name == "localhost" || is_numeric_host(name)) return true;
  return std::any_of(allowed_hosts_.begin(), allowed_hosts_.end(),
                     [&](const std::string& allowed) { return lower_text(allowed) == name; });
}

std::optional<HttpReply> StatusAccess::refusal_of_token(const HttpRequest& request) const {
  if (!accepts_) {
    return text_reply(403, fmt::format("This needs a token, and the program has none: set {}.\n", names_.token_file));
  }
  const std::string token = token_of(request.authorization);
  if (!token.empty() && accepts_(token)) return std::nullopt;
  return text_reply(401,
                    fmt::format("This needs the token of {}: curl -H \"Authorization: Bearer $TOKEN\", or in a browser "
                                "as the password, with any name.\n",
                                names_.token_file));
}

std::optional<HttpReply> StatusAccess::refusal(const HttpRequest& request, HttpAccess access) const {
  if (access == HttpAccess::kProbe) return std::nullopt;
  if (!is_known_host(request.host)) {
    return text_reply(421, fmt::format("The host \"{}\" is not known: use the address in digits, or add the name to "
                                       "{}.\n",
                                       excerpt(request.host), names_.allowed_hosts));
  }
  if (access == HttpAccess::kMetric || (access == HttpAccess::kRead && is_loopback_)) return std::nullopt;
  // A browser sends a password that it knows with the forms of other sites, too.
  if (access == HttpAccess::kChange) {
    const bool is_foreign = !request.origin.empty() && request.origin != "http://" + request.host &&
                            request.origin != "https://" + request.host;
    const bool is_cross =
        !request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none";
    if (is_foreign || is_cross) return text_reply(403, "Another web site may not do this.\n");
  }
  return refusal_of_token(request);
}

StatusAccess access_by_options(const ListenAddress& address, const std::vector<std::string>& allowed_hosts,
                               const std::string& token_file, const AccessNames& set, const AccessNames& names) {
  if (!address.is_loopback && token_file.empty()) {
    throw InvalidArgumentError(
        fmt::format("{} is \"{}:{}\", which others can reach, but there is no token for who may read the page: set {} "
                    "(`openssl rand -hex 32 > token && chmod 600 token`), or listen on 127.0.0.1",
                    set.address, address.host, address.port, set.token_file));
  }
  for (const std::string& host : allowed_hosts) {
    if (!host.empty() && host.find_first_of("/: \t") == host.npos) continue;
    throw InvalidArgumentError(
        fmt::format("{} has \"{}\": it must be a name without scheme and port, such as \"trainer-0.example.org\"",
                    set.allowed_hosts, host));
  }
  return StatusAccess(address.is_loopback, allowed_hosts, token_check(token_file), names);
}

}  // namespace longhaul

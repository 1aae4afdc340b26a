#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/status/http_reply.h"
#include "longhaul/status/listen_address.h"

namespace longhaul {

// How whoever sets them calls the options, for messages: "StatusOptions::token_file", "--token-file".
struct AccessNames {
  std::string address = "StatusOptions::address";
  std::string token_file = "StatusOptions::token_file";
  std::string allowed_hosts = "StatusOptions::allowed_hosts";
};

// Decides who may call which route. Any thread.
class StatusAccess {
 public:
  // `accepts`: whether a token is the right one; empty: there is none. Any thread calls it.
  StatusAccess(bool is_loopback, std::vector<std::string> allowed_hosts, std::function<bool(std::string_view)> accepts,
               AccessNames names = {});

  // The reply to one that may not; nullopt: it may.
  std::optional<HttpReply> refusal(const HttpRequest& request, HttpAccess access) const;

 private:
  bool is_known_host(const std::string& host) const;
  std::optional<HttpReply> refusal_of_token(const HttpRequest& request) const;

  const bool is_loopback_;
  const std::vector<std::string> allowed_hosts_;
  const std::function<bool(std::string_view)> accepts_;
  const AccessNames names_;
};

// The same by options: beyond loopback whoever reads needs a token of that file (TokenFile, whose errors it throws).
// InvalidArgumentError: the address is beyond loopback, and there is no file; a host is no name. `set` are the names
// for these errors, `names` those for clients.
StatusAccess access_by_options(const ListenAddress& address, const std::vector<std::string>& allowed_hosts,
                               const std::string& token_file, const AccessNames& set, const AccessNames& names);

// The token in an Authorization header: "Bearer TOKEN", or the password of "Basic BASE64", as browsers send it; empty:
// none.
std::string token_of(std::string_view authorization);

}  // namespace longhaul

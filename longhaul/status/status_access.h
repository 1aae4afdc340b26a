#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/status/http_reply.h"

namespace longhaul {

// Decides who may call which route. Any thread.
class StatusAccess {
 public:
  // `accepts`: whether a token is the right one; empty: there is none. Any thread calls it.
  StatusAccess(bool is_loopback, std::vector<std::string> allowed_hosts, std::function<bool(std::string_view)> accepts);

  // The reply to one that may not; nullopt: it may.
  std::optional<HttpReply> refusal(const HttpRequest& request, HttpAccess access) const;

 private:
  bool is_known_host(const std::string& host) const;
  std::optional<HttpReply> refusal_of_token(const HttpRequest& request) const;

  const bool is_loopback_;
  const std::vector<std::string> allowed_hosts_;
  const std::function<bool(std::string_view)> accepts_;
};

// The token in an Authorization header: "Bearer TOKEN", or the password of "Basic BASE64", as browsers send it; empty:
// none.
std::string token_of(std::string_view authorization);

}  // namespace longhaul

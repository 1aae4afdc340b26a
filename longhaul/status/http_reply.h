#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace longhaul {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();  // shared by replies
  std::string allow{};  // with status 405: the methods that this path has
};

HttpReply text_reply(int status, std::string text);

// What stands behind the "?" of a request, decoded: few and short texts by their names (HttpProtocol). Their bytes may
// be any: they come from a client.
using HttpQuery = std::map<std::string, std::string, std::less<>>;

// What is asked for, and what decides who may have it. Without a header its text is empty.
struct HttpRequest {
  std::string method, path;
  HttpQuery query{};
  std::string host, origin, fetch_site, authorization;
  bool has_body = false;
};

// Who may call a route.
enum class HttpAccess {
  kProbe,   // whoever reaches the port, under any name: it tells no more than a word, and is answered before all others
  kMetric,  // whoever reaches the port
  kRead,    // on loopback everybody, beyond it who has the token
  kChange,  // who has the token
};

// One that is not a probe runs on a thread of a small pool, and may wait a little; a probe must not wait at all.
struct HttpRoute {
  std::string method = "GET";  // GET includes HEAD
  std::string path;
  HttpAccess access = HttpAccess::kRead;
  std::function<HttpReply(const HttpRequest&)> answer;
};

}  // namespace longhaul

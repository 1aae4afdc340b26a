#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/status/http_reply.h"

namespace longhaul {

// HTTP as text: reads a request and writes the reply, by cpp-httplib. It has no socket: those of cpp-httplib 0.11 are
// inherited by programs that are started, may get a descriptor below 3, and each keeps a thread for as long as its
// client likes. Any thread may call.
class HttpProtocol {
 public:
  using Answer = std::function<HttpReply(const HttpRequest&)>;

  explicit HttpProtocol(Answer answer);
  ~HttpProtocol();
  HttpProtocol(const HttpProtocol&) = delete;
  HttpProtocol& operator=(const HttpProtocol&) = delete;

  // The bytes of the whole reply to these of a request, which has no body that is read; after it, the connection is to
  // be closed. A query of more than 16 parameters, with more than 1024 bytes in one, or with one twice, is answered
  // by 400. An exception from `answer` is a reply, too: 500, with its message in the log alone.
  std::string reply_to(std::string_view request) const;

 private:
  class Server;
  const std::unique_ptr<Server> server_;
};

// The bytes of a reply to what is no request; the connection is to be closed after it.
std::string bare_reply(int status, std::string_view reason, std::string_view text);

}  // namespace longhaul

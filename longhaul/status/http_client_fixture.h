#pragma once

#include <memory>
#include <string>

namespace longhaul {

// A client of one connection to this machine, which a test makes as slow and as rude as it likes. The socket blocks,
// for 20 s at most.
class RawClient {
 public:
  explicit RawClient(int port);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;

  bool send(const std::string& text);  // false: the server has closed the connection
  std::string receive_all();           // until the server closes the connection

 private:
  int fd_;
};

// Sends it and receives the reply. The first form has a request as clients write it: "GET", "/healthz", and further
// headers, each with "\r\n".
std::string fetch(int port, const std::string& method, const std::string& path, const std::string& headers = "");
std::string body_of(const std::string& reply);
int status_of(const std::string& reply);  // 0: it is none

}  // namespace longhaul

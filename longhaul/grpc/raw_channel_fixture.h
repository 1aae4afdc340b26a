#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace longhaul {

// What a call came to: the number of gRPC's status code, its text, and the answer.
struct RawReply {
  int code = 0;
  std::string text, bytes;

  template <typename Response>
  Response as() const {
    Response response;
    return code == 0 && response.ParseFromString(bytes) ? response : Response();
  }
};

// A client of any other program: a channel of gRPC's own, without keep-alive, token and certificate. With a CA's
// certificate, PEM, it speaks TLS.
class RawChannel {
 public:
  explicit RawChannel(const std::string& address, const std::string& ca = "");

  // Waits for half a minute at most. `path` is "/tensorflow.MasterService/RunStep".
  RawReply call(const std::string& path, const std::string& request) const;
  RawReply call(const std::string& path, const google::protobuf::MessageLite& request) const {
    return call(path, request.SerializeAsString());
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace longhaul

#include "longhaul/grpc/raw_channel_fixture.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <future>

#include "longhaul/grpc/transport/byte_buffers.h"

namespace longhaul {
namespace {

std::shared_ptr<grpc::ChannelCredentials> credentials(const std::string& ca) {
  if (ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca;
  return grpc::SslCredentials(options);
}

}  // namespace

RawChannel::RawChannel(const std::string& address, const std::string& ca)
    : channel_(grpc::CreateChannel(address, credentials(ca))) {}

RawReply RawChannel::call(const std::string& path, const std::string& request) const {
  const auto owner = std::make_shared<const std::string>(request);
  const grpc::ByteBuffer sent = to_byte_buffer({{*owner, owner}});
  grpc::ByteBuffer answer;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::GenericStub stub(channel_);
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, path, {}, &sent, &answer, [&](grpc::Status status) { ended.set_value(std::move(status)); });
  const grpc::Status status = ended.get_future().get();
  RawReply reply{static_cast<int>(status.error_code()), status.error_message(), ""};
  if (status.ok()) reply.bytes = joined(to_slices(answer));
  return reply;
}

}  // namespace longhaul

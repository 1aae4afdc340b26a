#pragma once

#include <memory>

#include "longhaul/cluster/security/transport_security.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace longhaul {

// The metadata of a call that carries the token.
inline constexpr char kTokenKey[] = "longhaul-token";

inline constexpr Seconds kReadFilesAgain{10};

// TLS with its files, which are read again so often, in whole seconds, by a thread of gRPC's; without files none. A
// caller believes a server whose certificate is of the CA and has the address's host; a server believes any of the
// CA's.
std::shared_ptr<grpc::ChannelCredentials> caller_credentials(const TransportSecurity& security,
                                                             Seconds read_again = kReadFilesAgain);
std::shared_ptr<grpc::ServerCredentials> server_credentials(const TransportSecurity& security,
                                                            Seconds read_again = kReadFilesAgain);

}  // namespace longhaul

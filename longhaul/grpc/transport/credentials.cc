#include "longhaul/grpc/transport/credentials.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>

namespace longhaul {
namespace {

namespace tls = grpc::experimental;

std::shared_ptr<tls::CertificateProviderInterface> watched_files(const TransportSecurity& security,
                                                                 Seconds read_again) {
  const auto seconds = static_cast<unsigned>(std::max(read_again.count(), 1.0));
  return std::make_shared<tls::FileWatcherCertificateProvider>(security.key_file, security.certificate_file,
                                                               security.ca_file, seconds);
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> caller_credentials(const TransportSecurity& security, Seconds read_again) {
  if (!has_tls(security)) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(watched_files(security, read_again));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const TransportSecurity& security, Seconds read_again) {
  if (!has_tls(security)) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(watched_files(security, read_again));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(security.verify_client ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                       : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return tls::TlsServerCredentials(options);
}

}  // namespace longhaul

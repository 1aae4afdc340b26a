#pragma once

#include <string>
#include <vector>

namespace longhaul {

// A certificate and its private key, as PEM. Keys are ECDSA on P-256, without a passphrase.
struct Certificate {
  std::string certificate, key;
};

struct CertificateOptions {
  std::string common_name{};         // cut to the 64 letters that it may have
  std::vector<std::string> names{};  // DNS names and IP addresses of a server
  double begins = 0, ends = 0;       // seconds since 1970
  bool is_server = true;             // false: for clients alone
  std::string key{};                 // PEM; empty: a new key
};

// A CA's own certificate, which may make others and nothing else.
Certificate make_authority(const CertificateOptions& options);

// A certificate that the CA makes: for servers and clients, or for clients alone. InvalidArgumentError: a name is
// neither an IP address nor a DNS name, or a PEM text cannot be read.
Certificate make_certificate(const Certificate& authority, const CertificateOptions& options);

// What the certificate says; it may be any that OpenSSL reads. InvalidArgumentError: it is not PEM.
struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> names;  // in its order: "worker0.example", "10.0.0.3", "::1"
  double begins = 0, ends = 0;
};
CertificateFacts facts_of_certificate(const std::string& pem);

// 32 random bytes, as 64 letters.
std::string make_token();

}  // namespace longhaul

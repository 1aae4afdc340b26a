#include "longhaul/cluster/security/pem_check.h"

#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <ctime>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/cluster/security/openssl_handles.h"

namespace longhaul {
namespace {

constexpr size_t kMostCertificates = 100;  // in one file

struct FreeStack {
  void operator()(STACK_OF(X509) * certificates) const { sk_X509_free(certificates); }  // not the certificates
};
using StackHandle = std::unique_ptr<STACK_OF(X509), FreeStack>;
using StoreHandle = std::unique_ptr<X509_STORE, OpensslRelease<X509_STORE_free>>;
using ContextHandle = std::unique_ptr<X509_STORE_CTX, OpensslRelease<X509_STORE_CTX_free>>;

[[noreturn]] void refuse_pem(const PemFile& file, const std::string& why) {
  throw InvalidArgumentError(fmt::format("security: {}: {}", file.path, why));
}

std::vector<CertificateHandle> read_certificates(const PemFile& file) {
  ERR_clear_error();
  const BioHandle source = text_source(file.text);
  std::vector<CertificateHandle> certificates;
  while (certificates.size() < kMostCertificates) {
    CertificateHandle next(PEM_read_bio_X509(source.get(), nullptr, no_passphrase, nullptr));
    if (!next) break;
    certificates.push_back(std::move(next));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = openssl_reason();
  if (certificates.empty() && at_end) refuse_pem(file, "it is not PEM: there is no -----BEGIN CERTIFICATE-----");
  if (!at_end) refuse_pem(file, fmt::format("certificate {} cannot be read: {}", certificates.size() + 1, reason));
  return certificates;
}

KeyHandle read_key(const PemFile& file) {
  ERR_clear_error();
  const BioHandle source = text_source(file.text);
  KeyHandle key(PEM_read_bio_PrivateKey(source.get(), nullptr, no_passphrase, nullptr));
  const std::string reason = openssl_reason();
  if (key) return key;
  if (file.text.find("-----BEGIN") == file.text.npos) refuse_pem(file, "it is not PEM: there is no -----BEGIN");
  if (file.text.find("ENCRYPTED") != file.text.npos) {
    refuse_pem(file,
               "the key needs a passphrase, and nobody is there to type it: `openssl pkey` writes it without one");
  }
  refuse_pem(file, "there is no private key that can be read: " + reason);
}

double seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return static_cast<double>(::timegm(&parts));
}

void check_time(const PemFile& file, const X509* certificate, double now) {
  const double begins = seconds_of(X509_get0_notBefore(certificate)),
               ends = seconds_of(X509_get0_notAfter(certificate));
  if (now >= ends) {
    refuse_pem(file,
               fmt::format("the certificate expired at {}: renew it, for instance with longhaul certificates --renew",
                           utc_text(ends)));
  }
  if (now < begins) {
    refuse_pem(file,
               fmt::format("the certificate is not valid before {}, and it is {} on this machine: look whether its "
                           "clock is right",
                           utc_text(begins), utc_text(now)));
  }
}

// All that may be wrong but the times, for which check_time() has better words.
std::string problem_of_chain(const std::vector<CertificateHandle>& chain,
                             const std::vector<CertificateHandle>& authorities, double now) {
  const StoreHandle store(X509_STORE_new());
  for (const auto& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  const StackHandle between(sk_X509_new_null());
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  const ContextHandle context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), between.get());
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), static_cast<time_t>(now));
  if (X509_verify_cert(context.get()) == 1) return "";
  const std::string problem = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  return problem;
}

}  // namespace

double check_pem(const PemFiles& files, double now) {
  const auto chain = read_certificates(files.certificate), authorities = read_certificates(files.authority);
  const KeyHandle key = read_key(files.key);
  const bool belongs = X509_check_private_key(chain[0].get(), key.get()) == 1;
  ERR_clear_error();
  if (!belongs) {
    refuse_pem(files.key,
               fmt::format("the key does not belong to the certificate in {}: take both from one task and of "
                           "one moment",
                           files.certificate.path));
  }
  check_time(files.certificate, chain[0].get(), now);
  if (authorities.size() == 1) check_time(files.authority, authorities[0].get(), now);
  if (const std::string problem = problem_of_chain(chain, authorities, now); !problem.empty()) {
    refuse_pem(files.certificate,
               fmt::format("no CA in {} has made this certificate ({}): take the ca.crt that was made "
                           "with it",
                           files.authority.path, problem));
  }
  return seconds_of(X509_get0_notAfter(chain[0].get()));
}

std::string utc_text(double seconds_since_1970) {
  const auto seconds = static_cast<time_t>(seconds_since_1970);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace longhaul

#include "longhaul/cluster/certificates/certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <span>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/security/openssl_handles.h"
#include "longhaul/cluster/spec/task_address.h"

namespace longhaul {
namespace {

using NamesHandle = std::unique_ptr<GENERAL_NAMES, OpensslRelease<GENERAL_NAMES_free>>;
using NumberHandle = std::unique_ptr<BIGNUM, OpensslRelease<BN_free>>;

constexpr size_t kLongestCommonName = 64;
constexpr int kSerialBits = 127;  // below 20 bytes, and positive

[[noreturn]] void openssl_failed(const char* call) {
  throw InternalError(fmt::format("{}: {}", call, openssl_reason()));
}

void must(bool success, const char* call) {
  if (!success) openssl_failed(call);
}

std::string text_of(BIO* written) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(written, &text);
  return {text, static_cast<size_t>(size)};
}

std::string pem_of_certificate(X509* certificate) {
  const BioHandle out(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_X509(out.get(), certificate) == 1, "PEM_write_bio_X509");
  return text_of(out.get());
}

std::string pem_of_key(EVP_PKEY* key) {
  const BioHandle out(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
       "PEM_write_bio_PKCS8PrivateKey");
  return text_of(out.get());
}

KeyHandle key_from(const std::string& pem) {
  const BioHandle source = text_source(pem);
  KeyHandle key(PEM_read_bio_PrivateKey(source.get(), nullptr, no_passphrase, nullptr));
  if (!key) throw InvalidArgumentError("the private key cannot be read: " + openssl_reason());
  return key;
}

CertificateHandle certificate_from(const std::string& pem) {
  const BioHandle source = text_source(pem);
  CertificateHandle certificate(PEM_read_bio_X509(source.get(), nullptr, no_passphrase, nullptr));
  if (!certificate) throw InvalidArgumentError("the certificate cannot be read: " + openssl_reason());
  return certificate;
}

KeyHandle new_or_given_key(const std::string& pem) {
  if (!pem.empty()) return key_from(pem);
  KeyHandle key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  must(key != nullptr, "EVP_PKEY_Q_keygen");
  return key;
}

void set_random_serial(X509* certificate) {
  const NumberHandle number(BN_new());
  must(BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1, "BN_rand");
  must(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr, "BN_to_ASN1_INTEGER");
}

void set_common_name(X509* certificate, const std::string& name) {
  const std::string cut = name.substr(0, kLongestCommonName);
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(cut.c_str()), -1, -1, 0) == 1,
       "X509_NAME_add_entry_by_txt");
}

void set_times(X509* certificate, double begins, double ends) {
  must(ASN1_TIME_set(X509_getm_notBefore(certificate), static_cast<time_t>(begins)) != nullptr &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), static_cast<time_t>(ends)) != nullptr,
       "ASN1_TIME_set");
}

struct Extension {
  int kind;
  std::string value;
};

void add_extensions(X509* certificate, X509* issuer, const std::vector<Extension>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    must(extension != nullptr, "X509V3_EXT_conf_nid");
    const int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    must(added == 1, "X509_add_ext");
  }
}

CertificateHandle unsigned_certificate(EVP_PKEY* key, const CertificateOptions& options) {
  CertificateHandle certificate(X509_new());
  must(certificate && X509_set_version(certificate.get(), 2) == 1, "X509_set_version");  // 2 is version 3
  set_random_serial(certificate.get());
  set_common_name(certificate.get(), options.common_name);
  set_times(certificate.get(), options.begins, options.ends);
  must(X509_set_pubkey(certificate.get(), key) == 1, "X509_set_pubkey");
  return certificate;
}

bool is_ip_address(const std::string& name) {
  if (name.find('\0') != name.npos) return false;  // it would end the address for inet_pton()
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

bool is_dns_name(const std::string& name) {
  try {
    return !name.empty() && TaskAddress::parse(name + ":1").host.find(':') == name.npos;
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

// "DNS:worker0.example,IP:10.0.0.3", whose names have no comma.
std::string alternative_names(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    const bool is_ip = is_ip_address(name);
    if (!is_ip && !is_dns_name(name)) {
      throw InvalidArgumentError(fmt::format("\"{}\" is neither an IP address nor a DNS name", excerpt(name)));
    }
    joined += fmt::format("{}{}:{}", joined.empty() ? "" : ",", is_ip ? "IP" : "DNS", name);
  }
  return joined;
}

std::vector<Extension> extensions_of(const CertificateOptions& options) {
  std::vector<Extension> extensions{{NID_basic_constraints, "critical,CA:FALSE"},
                                    {NID_key_usage, "critical,digitalSignature"},
                                    {NID_ext_key_usage, options.is_server ? "serverAuth,clientAuth" : "clientAuth"},
                                    {NID_subject_key_identifier, "hash"},
                                    {NID_authority_key_identifier, "keyid:always"}};
  if (!options.names.empty()) extensions.push_back({NID_subject_alt_name, alternative_names(options.names)});
  return extensions;
}

std::string text_of_ip(std::span<const unsigned char> bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

std::string text_of_name(const GENERAL_NAME& name) {
  const ASN1_STRING* value = name.type == GEN_IPADD ? name.d.iPAddress : name.d.dNSName;
  const std::span bytes(ASN1_STRING_get0_data(value), static_cast<size_t>(ASN1_STRING_length(value)));
  return name.type == GEN_IPADD ? text_of_ip(bytes) : std::string(bytes.begin(), bytes.end());
}

double time_of(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return static_cast<double>(::timegm(&parts));
}

}  // namespace

Certificate make_authority(const CertificateOptions& options) {
  const KeyHandle key = new_or_given_key(options.key);
  const CertificateHandle certificate = unsigned_certificate(key.get(), options);
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) == 1, "X509_set_issuer_name");
  add_extensions(certificate.get(), certificate.get(),
                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                  {NID_subject_key_identifier, "hash"}});
  must(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0, "X509_sign");
  return {pem_of_certificate(certificate.get()), pem_of_key(key.get())};
}

Certificate make_certificate(const Certificate& authority, const CertificateOptions& options) {
  const CertificateHandle issuer = certificate_from(authority.certificate);
  const KeyHandle issuer_key = key_from(authority.key), key = new_or_given_key(options.key);
  const CertificateHandle certificate = unsigned_certificate(key.get(), options);
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get())) == 1, "X509_set_issuer_name");
  add_extensions(certificate.get(), issuer.get(), extensions_of(options));
  must(X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) > 0, "X509_sign");
  return {pem_of_certificate(certificate.get()), pem_of_key(key.get())};
}

CertificateFacts facts_of_certificate(const std::string& pem) {
  const CertificateHandle certificate = certificate_from(pem);
  CertificateFacts facts;
  std::array<char, kLongestCommonName + 1> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  facts.common_name = name.data();
  facts.begins = time_of(X509_get0_notBefore(certificate.get()));
  facts.ends = time_of(X509_get0_notAfter(certificate.get()));
  const NamesHandle names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME& each = *sk_GENERAL_NAME_value(names.get(), i);
    if (each.type == GEN_IPADD || each.type == GEN_DNS) facts.names.push_back(text_of_name(each));
  }
  return facts;
}

std::string make_token() {
  std::array<unsigned char, 32> bytes{};
  must(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "RAND_bytes");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace longhaul

#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace longhaul {

// OpenSSL's objects, each with one owner. For sources alone: what includes this compiles against OpenSSL.
template <auto release>
struct OpensslRelease {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using BioHandle = std::unique_ptr<BIO, OpensslRelease<BIO_free_all>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslRelease<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, OpensslRelease<X509_free>>;

// Reads from a text, which must live as long.
inline BioHandle text_source(const std::string& text) {
  return BioHandle(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key with a passphrase is refused: OpenSSL would ask the terminal for it.
inline int no_passphrase(char*, int, int, void*) {
  return -1;
}

// The reason of this thread's last failed call, which is forgotten.
inline std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

}  // namespace longhaul

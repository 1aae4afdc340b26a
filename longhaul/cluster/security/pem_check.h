#pragma once

#include <string>

namespace longhaul {

// A file, and what is in it.
struct PemFile {
  std::string path, text;
};

// A task's certificate (first in its file, those of authorities between it and the CA behind it), its private key, and
// the certificates of the CAs that it believes.
struct PemFiles {
  PemFile certificate, key, authority;
};

// When the certificate ends, in seconds since 1970. InvalidArgumentError, which names file and remedy: a file is not
// PEM, or lacks what it should have; the key needs a passphrase; certificate and key do not belong together; none of
// the CAs has made the certificate; it, or the CA's, has expired at `now` or is not valid yet.
double check_pem(const PemFiles& files, double now);

// "2026-11-23 20:14:35 UTC"
std::string utc_text(double seconds_since_1970);

}  // namespace longhaul

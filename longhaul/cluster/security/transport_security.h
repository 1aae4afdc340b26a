#pragma once

#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// How a task proves who it is, and whom it believes: by certificates (TLS), by a token, or both. `longhaul
// certificates` makes the files for each task of a cluster.
//
//   const TransportSecurity security{.certificate_file = "certificates/worker-1.crt",
//                                    .key_file = "certificates/worker-1.key",
//                                    .ca_file = "certificates/ca.crt"};
//   check_security(security);
//
// A token alone is for loopback, where it keeps other users of the machine out. On a network it would travel in clear
// text, and with it everything else: whoever listens once could run what he likes, so that there it needs TLS.
struct TransportSecurity {
  std::string certificate_file{}, key_file{}, ca_file{};  // PEM; all three or none. Read again when they change
  std::string token_file{};   // its first line goes with each call, and each call needs one of its lines (TokenFile)
  bool insecure = false;      // no TLS on other addresses than loopback either; logged at each start
  bool verify_client = true;  // false: a client needs no certificate, but on a network the token
};

bool has_tls(const TransportSecurity& security);

// Checks the files of a task before it starts. Errors name the file and the remedy.
//
// InvalidArgumentError: only some of the three PEM files are named; one is not PEM, or too large; the certificate and
// the key do not belong together; the certificate was not made by the CA of ca_file, has expired or is not valid yet
// (the message says when); the token is malformed (TokenFile); `insecure` or `verify_client = false` would have no
// effect. NotFoundError: a file is missing. PermissionDeniedError: it cannot be read, or others may read the key or the
// token: they have mode 0600 or less; if they belong to root, the group may read them too, as in Kubernetes. A
// certificate that expires within two weeks is a warning in the log.
void check_security(const TransportSecurity& security, Clock& clock = Clock::real());

// PermissionDeniedError: a task that listens there would serve strangers. Allowed are loopback addresses (127.0.0.0/8,
// [::1], "localhost"), any address with TLS, and with `insecure`, which is logged as a warning. TLS that asks no
// certificate of clients counts with a token alone. The message prints the lines to add; `task`, such as
// "/job:worker/replica:0/task:1", names the files in it. InvalidArgumentError: it is no address.
void check_listen_address(const std::string& address, const TransportSecurity& security, const std::string& task = "");

// PermissionDeniedError: a call to that address would show the token to anyone who listens on the network: the address
// is not on loopback, there is no TLS, and `insecure` is not set.
void check_token_may_go_to(const std::string& address, const TransportSecurity& security);

// Whether only this machine can reach that host. Names are not looked up: none but "localhost" is.
bool is_loopback_host(const std::string& host);

// "worker-1": the names of a task's certificate and key files without ".crt" and ".key". For a text that is not a
// task's name: "JOB-INDEX".
std::string certificate_stem(const std::string& task);
inline constexpr char kAuthorityFile[] = "ca.crt", kTokenFileName[] = "token";

}  // namespace longhaul

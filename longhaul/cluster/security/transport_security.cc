#include "longhaul/cluster/security/transport_security.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/security/pem_check.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/credentials/private_file.h"
#include "longhaul/credentials/token_file.h"

namespace longhaul {
namespace {

constexpr double kWarnBefore = 14 * 24 * 3600;

void check_all_or_none(const TransportSecurity& security) {
  const bool any = !security.certificate_file.empty() || !security.key_file.empty() || !security.ca_file.empty();
  if (!any || has_tls(security)) return;
  std::string missing;
  for (const auto& [name, file] :
       {std::pair("certificate_file", &security.certificate_file), std::pair("key_file", &security.key_file),
        std::pair("ca_file", &security.ca_file)}) {
    if (file->empty()) missing += fmt::format("{}{}", missing.empty() ? "" : " and ", name);
  }
  throw InvalidArgumentError(
      fmt::format("security: TLS needs certificate_file, key_file and ca_file; missing: {}", missing));
}

void check_effects(const TransportSecurity& security) {
  if (security.insecure && has_tls(security)) {
    throw InvalidArgumentError(
        "security: insecure = true leaves TLS off, but certificate_file, key_file and ca_file are given: leave out one "
        "or the other");
  }
  if (!security.verify_client && !has_tls(security)) {
    throw InvalidArgumentError(
        "security: verify_client = false is about the certificates of clients, but without certificate_file, key_file "
        "and ca_file there is no TLS: leave it out");
  }
}

void check_tls(const TransportSecurity& security, Clock& clock) {
  const PemFiles files{{security.certificate_file, read_public_file(security.certificate_file)},
                       {security.key_file, read_private_file(security.key_file)},
                       {security.ca_file, read_public_file(security.ca_file)}};
  const double now = clock.wall_time(), ends = check_pem(files, now);
  if (ends - now < kWarnBefore) {
    log_warning(
        "{}: the certificate expires at {}, in {:.1f} days: renew it, for instance with longhaul certificates "
        "--renew",
        security.certificate_file, utc_text(ends), (ends - now) / (24 * 3600));
  }
}

// What to write for that task's server.
std::string lines_for(const std::string& task) {
  const std::string stem = "certificates/" + certificate_stem(task);
  return fmt::format(
      "  .security = {{.certificate_file = \"{}.crt\", .key_file = \"{}.key\", .ca_file = \"certificates/{}\"}},", stem,
      stem, kAuthorityFile);
}

[[noreturn]] void refuse_to_listen(const std::string& address, const std::string& why, const std::string& task) {
  throw PermissionDeniedError(
      fmt::format("refusing to listen on {}: {}. Whoever reaches that port could run any operation with the rights of "
                  "this process. Make certificates with\n"
                  "  longhaul certificates --cluster=cluster.json --out=certificates\n"
                  "and add to the server's options\n{}\n"
                  "or, where everybody who reaches the port may do that, add\n"
                  "  .security = {{.insecure = true}},",
                  address, why, lines_for(task)));
}

}  // namespace

bool has_tls(const TransportSecurity& security) {
  return !security.certificate_file.empty() && !security.key_file.empty() && !security.ca_file.empty();
}

void check_security(const TransportSecurity& security, Clock& clock) {
  check_all_or_none(security);
  check_effects(security);
  if (has_tls(security)) check_tls(security, clock);
  if (!security.token_file.empty()) parse_tokens(security.token_file, read_private_file(security.token_file));
}

void check_listen_address(const std::string& address, const TransportSecurity& security, const std::string& task) {
  if (is_loopback_host(TaskAddress::parse(address).host)) return;
  const bool has_token = !security.token_file.empty();
  if (has_tls(security)) {
    if (security.verify_client || has_token) return;
    refuse_to_listen(address, "verify_client = false lets in clients without a certificate, and there is no token_file",
                     task);
  }
  if (!security.insecure) {
    refuse_to_listen(address,
                     has_token ? "a token without TLS can be read by whoever listens on the network"
                               : "it is not a loopback address, and there is no TLS",
                     task);
  }
  log_warning("listening on {} without TLS, because security says insecure = true: {}", address,
              has_token ? "whoever listens on the network can read the token and what is sent"
                        : "whoever reaches this port can run any operation with the rights of this process");
}

void check_token_may_go_to(const std::string& address, const TransportSecurity& security) {
  if (security.token_file.empty() || has_tls(security) || security.insecure) return;
  if (is_loopback_host(TaskAddress::parse(address).host)) return;
  throw PermissionDeniedError(
      fmt::format("security: the token of {} would go to {} without TLS, where whoever listens on the network can read "
                  "it: add certificate_file, key_file and ca_file, or leave out the token_file, or, where nobody can "
                  "listen, add insecure = true",
                  security.token_file, address));
}

bool is_loopback_host(const std::string& host) {
  if (host == "localhost") return true;
  if (host.find('\0') != host.npos) return false;  // it would end the address for inet_pton()
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

std::string certificate_stem(const std::string& task) {
  if (!task.starts_with("/job:")) return "JOB-INDEX";
  const TaskId id = parse_task_name(task);
  return fmt::format("{}-{}", id.job, id.index);
}

}  // namespace longhaul

#include "longhaul/cluster/certificates/cluster_certificates.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/cluster/certificates/certificate.h"
#include "longhaul/cluster/certificates/credential_writer.h"
#include "longhaul/cluster/security/pem_check.h"
#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/credentials/private_file.h"
#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

constexpr double kDay = 24 * 3600;
constexpr int kAuthorityDays = 3650, kMostDays = 3650;
constexpr double kBeforeNow = 3600;                // so that a machine whose clock is behind takes it at once
constexpr double kLeastAuthorityLeft = 30 * kDay;  // of a CA that is to make certificates
constexpr char kAuthorityKey[] = "ca.key", kClient[] = "client";

struct NewFile {
  CertificateOutput output;
  std::string contents;
};

// The names by which others reach the task.
std::vector<std::string> names_of_address(const std::string& place, const std::string& address,
                                          const std::vector<std::string>& more) {
  std::string host = TaskAddress::parse(address).host;
  host.erase(std::find(host.begin(), host.end(), '%'), host.end());  // an interface is of one machine
  std::vector<std::string> names{host};
  if (host == "0.0.0.0" || host == "::") {
    names.clear();
    if (more.empty()) {
      throw InvalidArgumentError(
          fmt::format("{} has the address {}, by which others cannot reach it: write the one that they use, or "
                      "add names with --add-name",
                      place, address));
    }
  }
  if (is_loopback_host(host)) names.insert(names.end(), {"localhost", "127.0.0.1", "::1"});
  names.insert(names.end(), more.begin(), more.end());
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  }
  return once;
}

void check_directory(const ClusterCertificatesOptions& options) {
  FileSystem& files = FileSystem::real();
  if (options.renew || !files.exists(options.directory) || files.list(options.directory).empty()) return;
  throw AlreadyExistsError(
      fmt::format("{} is not empty, and nothing in it is replaced: name a new directory, or say --renew for new "
                  "certificates of the CA that is in it",
                  options.directory));
}

// What a call makes; nothing is written before write().
class Maker {
 public:
  explicit Maker(const ClusterCertificatesOptions& options) : options_(options), now_(options.clock->wall_time()) {}

  void make_all(const ClusterSpec& cluster) {
    take_authority();
    for (const auto& [job, tasks] : cluster.tasks()) {
      for (const auto& [index, address] : tasks) add_task(job, index, address);
    }
    add_certificate({.common_name = kClient, .is_server = false}, kClient,
                    "of a program that is not a task of the cluster");
    if (!is_there(kTokenFileName)) {
      add({kTokenFileName, "a token, for servers with verify_client = false"}, make_token() + "\n");
    }
  }

  std::vector<CertificateOutput> write() {
    FileSystem::real().make_directories(options_.directory);
    std::optional<CredentialsTurn> turn;
    if (!options_.renew) turn.emplace(options_.directory);
    check_directory(options_);
    std::vector<CertificateOutput> written;
    for (const NewFile& file : files_) {
      write_credential(path_of(file.output.name), file.contents, file.output.is_secret, options_.renew);
      written.push_back(file.output);
    }
    return written;
  }

 private:
  std::string path_of(const std::string& name) const { return join_path(options_.directory, name); }
  bool is_there(const std::string& name) const { return options_.renew && FileSystem::real().exists(path_of(name)); }
  void add(CertificateOutput output, std::string contents) {
    files_.push_back({std::move(output), std::move(contents)});
  }

  void take_authority() {
    if (options_.renew) return find_authority();
    authority_ = make_authority(
        {.common_name = "Longhaul cluster CA", .begins = now_ - kBeforeNow, .ends = now_ + kAuthorityDays * kDay});
    add({kAuthorityKey, "the CA's key: whoever has it can join the cluster. Keep it here, and off the tasks' machines"},
        authority_.key);
    add({kAuthorityFile, "the CA's certificate, for every task and client", false}, authority_.certificate);
  }

  void find_authority() {
    for (const char* name : {kAuthorityKey, kAuthorityFile}) {
      if (is_there(name)) continue;
      throw NotFoundError(fmt::format(
          "{} is not there, so there is no CA to renew certificates with: leave out --renew, and name a new "
          "directory, for new ones",
          path_of(name)));
    }
    authority_ = {read_public_file(path_of(kAuthorityFile)), read_private_file(path_of(kAuthorityKey))};
    const double ends = facts_of_certificate(authority_.certificate).ends;
    if (ends - now_ > kLeastAuthorityLeft) return;
    throw FailedPreconditionError(
        fmt::format("{}: the CA expires at {}: make a new directory, and give all tasks the files in it",
                    path_of(kAuthorityFile), utc_text(ends)));
  }

  void add_task(const std::string& job, int index, const std::string& address) {
    const std::string task = task_name({job, index});
    add_certificate({.common_name = task, .names = names_of_address(task, address, options_.more_names)},
                    certificate_stem(task), fmt::format("of {}, which listens on {}", task, address));
  }

  void add_certificate(CertificateOptions options, const std::string& stem, const std::string& purpose) {
    const std::string key_name = stem + ".key", name = stem + ".crt";
    const bool has_key = is_there(key_name);
    if (has_key) options.key = read_private_file(path_of(key_name));
    options.begins = now_ - kBeforeNow;
    options.ends = std::min(now_ + options_.days * kDay, facts_of_certificate(authority_.certificate).ends);
    const Certificate made = make_certificate(authority_, options);
    check_pem({{path_of(name), made.certificate},
               {path_of(key_name), made.key},
               {path_of(kAuthorityFile), authority_.certificate}},
              now_);
    if (!has_key) add({key_name, "the key " + purpose}, made.key);
    add({name, fmt::format("the certificate {}, until {}", purpose, utc_text(options.ends)), false}, made.certificate);
  }

  const ClusterCertificatesOptions& options_;
  const double now_;
  Certificate authority_;
  std::vector<NewFile> files_;
};

void check_options(const ClusterSpec& cluster, const ClusterCertificatesOptions& options) {
  if (cluster.empty()) throw InvalidArgumentError("the cluster has no tasks");
  if (options.directory.empty()) throw InvalidArgumentError("no directory is named");
  if (options.days < 1 || options.days > kMostDays) {
    throw InvalidArgumentError(fmt::format("certificates are valid for 1 to {} days, not {}", kMostDays, options.days));
  }
}

}  // namespace

std::vector<CertificateOutput> write_cluster_certificates(const ClusterSpec& cluster,
                                                          const ClusterCertificatesOptions& options) {
  check_options(cluster, options);
  check_directory(options);
  std::optional<CredentialsTurn> turn;  // from the CA that is read to the last file
  if (options.renew && FileSystem::real().exists(options.directory)) turn.emplace(options.directory);
  Maker maker(options);
  maker.make_all(cluster);
  return maker.write();
}

}  // namespace longhaul

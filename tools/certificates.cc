// longhaul certificates: a CA, and certificates for each task of a cluster.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "longhaul/cluster/certificates/cluster_certificates.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/io/files/file.h"
#include "longhaul/launch/tf_config.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr uint64_t kMostClusterBytes = uint64_t{1} << 20;
constexpr char kEnvironment[] = "TF_CONFIG";

struct CertificatesOptions {
  std::string cluster;
  ClusterCertificatesOptions written;
};

ClusterSpec read_cluster(const std::string& where) {
  if (where != kEnvironment) return parse_cluster(read_file(FileSystem::real(), where, kMostClusterBytes), where);
  const auto text = process_environment()(kEnvironment);
  if (!text) throw std::runtime_error("TF_CONFIG is not set; a file of that name is ./TF_CONFIG");
  return parse_cluster(*text, kEnvironment);
}

std::string outputs_text(const std::vector<CertificateOutput>& outputs, const std::string& directory) {
  std::string text = fmt::format("{}:\n", console::shown(directory, 1000));
  for (const CertificateOutput& output : outputs) {
    text += fmt::format("  {}{}: {}\n", output.name, output.is_secret ? " (secret)" : "", output.purpose);
  }
  return text;
}

std::string remedies_text(const ClusterSpec& cluster) {
  const std::string job = cluster.jobs().front();
  const std::string stem = fmt::format("{}-{}", job, cluster.task_indices(job).front());
  return fmt::format(
      "\nCopy to each machine ca.crt and the two files of its task, and leave ca.key here. In the options of the "
      "server\n"
      "of {0}, and of each other with its own files:\n"
      "  .security = {{.certificate_file = \"{0}.crt\", .key_file = \"{0}.key\", .ca_file = \"ca.crt\"}},\n"
      "In those of a session of another program, on grpc://...: the same with client.crt and client.key.\n"
      "Before they expire, write new ones with --renew; servers that run read them again by themselves.\n",
      stem);
}

constexpr char kAboutCertificates[] =
    "  longhaul certificates --cluster=cluster.json --out=certificates\n"
    "  longhaul certificates --cluster=TF_CONFIG --out=certificates --days=30 --renew\n"
    "\n"
    "Each task gets a certificate of its own; docs/guide/security.md says which files go where.\n"
    "Exit status: 0 done; 1 an error, such as files in the directory that would be replaced; 2 wrong usage.";

void make_certificates(const CertificatesOptions& options) {
  const ClusterSpec cluster = read_cluster(options.cluster);
  const std::vector<CertificateOutput> outputs = write_cluster_certificates(cluster, options.written);
  print(outputs_text(outputs, options.written.directory) + remedies_text(cluster));
}

}  // namespace

void add_certificates(CLI::App& program) {
  const auto options = std::make_shared<CertificatesOptions>();
  CLI::App* command =
      program.add_subcommand("certificates", "Makes a CA, and certificates for each task of a cluster and for clients");
  command->footer(kAboutCertificates);
  command
      ->add_option("--cluster", options->cluster,
                   "The cluster: a file with JSON, such as {\"ps\": [\"ps0:2222\"], \"worker\": [\"worker0:2222\"]} or "
                   "what TF_CONFIG has; or TF_CONFIG, for the environment variable")
      ->required();
  command->add_option("--out", options->written.directory, "The directory for the files: new, or empty")->required();
  command->add_option("--days", options->written.days, "How long certificates are valid")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  command->add_flag("--renew", options->written.renew,
                    "Write new certificates into the directory, for the same keys, of the CA that is in it");
  command
      ->add_option("--add-name", options->written.more_names,
                   "A DNS name or an IP address that goes into the certificates of all tasks; may be there several "
                   "times")
      ->allow_extra_args(false);
  command->callback([options] { make_certificates(*options); });
}

}  // namespace longhaul::tools

#pragma once

#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/spec/cluster_spec.h"

namespace longhaul {

struct ClusterCertificatesOptions {
  std::string directory{};
  int days = 825;                         // that certificates of tasks and clients are valid
  bool renew = false;                     // new certificates for what is in the directory
  std::vector<std::string> more_names{};  // DNS names and IP addresses, in the certificates of all tasks
  Clock* clock = &Clock::real();
};

// A file that was written, and what it is for.
struct CertificateOutput {
  std::string name;  // in the directory
  std::string purpose;
  bool is_secret = true;
};

// Writes into the directory, which is made if it is not there, what the tasks of a cluster need to believe each other:
//
//   ca.crt, ca.key       the CA that makes the certificates, valid for ten years
//   worker-1.crt, .key   of each task; with the host of its address, and for a loopback address localhost, 127.0.0.1
//                        and ::1
//   client.crt, .key     for programs that are not a task of the cluster
//   token                a token, for servers with `verify_client = false`
//
// Keys and token have mode 0600. Everything is made before the first file is written; each file appears whole, and
// none is replaced, unless `renew` is set. That keeps the CA, the keys and the token, so that a task that reads its
// files meanwhile never has a certificate without its key, and tasks with old and new certificates believe each other;
// tasks that the cluster has got since then get theirs.
//
// InvalidArgumentError: the cluster is empty, a task's address is none that others could reach (0.0.0.0), a name or
// `days` is unusable, or what `renew` finds is damaged. AlreadyExistsError: the directory is not empty, and `renew` is
// not set. NotFoundError: `renew` finds no CA. FailedPreconditionError: the CA expires too soon. Else the system's
// errors, such as a full disk; what was written before stays, and `renew` completes it once ca.key and ca.crt, the
// first files, are there.
std::vector<CertificateOutput> write_cluster_certificates(const ClusterSpec& cluster,
                                                          const ClusterCertificatesOptions& options);

}  // namespace longhaul

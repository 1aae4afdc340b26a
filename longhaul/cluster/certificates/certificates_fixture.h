#pragma once

#include <sys/stat.h>

#include <string>

#include "longhaul/cluster/certificates/certificate.h"
#include "longhaul/cluster/certificates/credential_writer.h"
#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {

inline constexpr double kDayOfCertificates = 24 * 3600;

// A directory with a CA and the files of a task on a clock that stands still; tests make further ones.
class CertificatesFixture {
 public:
  CertificatesFixture() {
    put("ca.crt", authority.certificate, false);
    put_task("task", authority, now() - kDayOfCertificates, now() + 100 * kDayOfCertificates);
  }

  double now() const { return clock.wall_time(); }
  std::string path(const std::string& name) const { return directory.file(name); }
  void put(const std::string& name, const std::string& text, bool is_secret = true) const {
    write_credential(path(name), text, is_secret, true);
  }
  Certificate new_authority() const {
    return make_authority(
        {.common_name = "CA of a test", .begins = now() - 1000, .ends = now() + 1000 * kDayOfCertificates});
  }
  // NAME.crt and NAME.key
  void put_task(const std::string& name, const Certificate& ca, double begins, double ends) const {
    const Certificate made = make_certificate(
        ca, {.common_name = name, .names = {"localhost", "127.0.0.1"}, .begins = begins, .ends = ends});
    put(name + ".crt", made.certificate, false);
    put(name + ".key", made.key);
  }
  TransportSecurity security(const std::string& name = "task") const {
    return {.certificate_file = path(name + ".crt"), .key_file = path(name + ".key"), .ca_file = path("ca.crt")};
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  const Certificate authority = new_authority();
};

// The permissions of a file.
inline unsigned mode_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

}  // namespace longhaul

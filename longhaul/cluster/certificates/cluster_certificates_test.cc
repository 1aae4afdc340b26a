#include "longhaul/cluster/certificates/cluster_certificates.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "longhaul/base/error.h"
#include "longhaul/cluster/certificates/certificates_fixture.h"
#include "longhaul/cluster/certificates/credential_writer.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const ClusterSpec& small_cluster() {
  static const auto* cluster =
      new ClusterSpec({{"ps", {"10.0.0.3:2222"}}, {"worker", {{0, "worker0.example:2222"}, {7, "[::1]:2223"}}}});
  return *cluster;
}

class ClusterCertificatesTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return made_ + "/" + name; }
  std::string text_of(const std::string& name) const { return read_file(FileSystem::real(), path(name)); }
  CertificateFacts facts_of(const std::string& name) const { return facts_of_certificate(text_of(name)); }

  std::vector<CertificateOutput> write(bool renew = false, const ClusterSpec& cluster = small_cluster()) {
    return write_cluster_certificates(cluster, {.directory = made_, .renew = renew, .clock = &clock_});
  }
  void check_task(const std::string& stem) {
    check_security({.certificate_file = path(stem + ".crt"),
                    .key_file = path(stem + ".key"),
                    .ca_file = path("ca.crt"),
                    .token_file = path("token")},
                   clock_);
  }

  // The status of a command of openssl, with what it prints in "said".
  int openssl(const std::string& arguments) {
    return std::system(fmt::format("openssl {} >{} 2>&1", arguments, directory_.file("said")).c_str());
  }
  std::string said() { return read_file(FileSystem::real(), directory_.file("said")); }

  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_;
  const std::string made_ = directory_.file("made");
};

TEST_F(ClusterCertificatesTest, EachTaskHasFilesThatItsServerTakes) {
  const auto outputs = write();
  EXPECT_THAT(FileSystem::real().list(made_),
              ElementsAre("ca.crt", "ca.key", "client.crt", "client.key", "ps-0.crt", "ps-0.key", "token",
                          "worker-0.crt", "worker-0.key", "worker-7.crt", "worker-7.key"));
  EXPECT_EQ(outputs.size(), 11u);
  EXPECT_EQ(outputs[0].name, "ca.key");
  for (const CertificateOutput& output : outputs) {
    EXPECT_EQ(mode_of(path(output.name)), output.is_secret ? 0600u : 0644u) << output.name;
    EXPECT_EQ(output.is_secret, !output.name.ends_with(".crt")) << output.name;
  }
  for (const char* stem : {"ps-0", "worker-0", "worker-7", "client"}) check_task(stem);
}

TEST_F(ClusterCertificatesTest, TheirNamesAreThoseOfTheirAddresses) {
  write();
  EXPECT_THAT(facts_of("ps-0.crt").names, ElementsAre("10.0.0.3"));
  EXPECT_THAT(facts_of("worker-0.crt").names, ElementsAre("worker0.example"));
  EXPECT_THAT(facts_of("worker-7.crt").names, ElementsAre("::1", "localhost", "127.0.0.1"));
  EXPECT_THAT(facts_of("client.crt").names, ElementsAre());
  EXPECT_EQ(facts_of("ps-0.crt").common_name, "/job:ps/replica:0/task:0");
}

TEST_F(ClusterCertificatesTest, AddedNamesAreInAllTasks) {
  write_cluster_certificates(small_cluster(),
                             {.directory = made_, .more_names = {"node7", "fe80::7"}, .clock = &clock_});
  EXPECT_THAT(facts_of("ps-0.crt").names, ElementsAre("10.0.0.3", "node7", "fe80::7"));
  EXPECT_THAT(refusal_of([&] {
                write_cluster_certificates(small_cluster(), {.directory = made_ + "2", .more_names = {"a b"}});
              }),
              HasSubstr("\"a b\""));
  EXPECT_FALSE(FileSystem::real().exists(made_ + "2")) << "errors come before the first file";
}

TEST_F(ClusterCertificatesTest, AnAddressOfNoHostNeedsANameForIt) {
  const ClusterSpec everywhere({{"worker", {"0.0.0.0:2222"}}});
  EXPECT_THAT(refusal_of([&] { write(false, everywhere); }),
              AllOf(HasSubstr("/job:worker/replica:0/task:0 has the address 0.0.0.0:2222"), HasSubstr("--add-name")));
  write_cluster_certificates(everywhere, {.directory = made_, .more_names = {"node7"}, .clock = &clock_});
  EXPECT_THAT(facts_of("worker-0.crt").names, ElementsAre("node7"));
}

TEST_F(ClusterCertificatesTest, ANetworkInterfaceIsNotInTheName) {
  write(false, ClusterSpec({{"worker", {"[fe80::1%eth0]:2222"}}}));
  EXPECT_THAT(facts_of("worker-0.crt").names, ElementsAre("fe80::1"));
}

TEST_F(ClusterCertificatesTest, NothingIsReplaced) {
  write();
  const std::string before = text_of("ca.crt");
  EXPECT_THAT(error_of<AlreadyExistsError>([&] { write(); }), AllOf(HasSubstr(made_), HasSubstr("--renew")));
  EXPECT_EQ(text_of("ca.crt"), before);
  FileSystem::real().make_directories(directory_.file("other/a"));
  EXPECT_THROW(write_cluster_certificates(small_cluster(), {.directory = directory_.file("other")}),
               AlreadyExistsError);
}

TEST_F(ClusterCertificatesTest, OneCallAtATimeWritesInADirectory) {
  FileSystem::real().make_directories(made_);
  for (const bool renews : {false, true}) {
    {
      const CredentialsTurn another(made_);
      EXPECT_THAT(error_of([&] { write(renews); }), HasSubstr("another process is writing certificates in " + made_));
    }
    write(renews);
  }
}

TEST_F(ClusterCertificatesTest, RenewalKeepsCaKeysAndToken) {
  write();
  std::map<std::string, std::string> before;
  for (const std::string& name : FileSystem::real().list(made_)) before[name] = text_of(name);
  clock_.advance(Seconds{800 * kDayOfCertificates});
  const ClusterSpec larger({{"ps", {"10.0.0.3:2222", "10.0.0.4:2222"}}, {"worker", {"worker0.example:2222"}}});
  write(true, larger);
  for (const auto& [name, text] : before) {
    const bool is_new = name == "ps-0.crt" || name == "worker-0.crt" || name == "client.crt";
    EXPECT_EQ(text_of(name) != text, is_new) << name;
  }
  for (const char* stem : {"ps-0", "ps-1", "worker-0", "client"}) check_task(stem);
  EXPECT_GT(facts_of("ps-0.crt").ends, clock_.wall_time() + 800 * kDayOfCertificates);
  clock_.advance(Seconds{100 * kDayOfCertificates});
  EXPECT_THROW(check_task("worker-7"), InvalidArgumentError) << "it is no task any more";
}

TEST_F(ClusterCertificatesTest, RenewalCompletesWhatWasInterrupted) {
  write();
  for (const char* name : {"token", "worker-7.key", "worker-7.crt", "client.crt"})
    FileSystem::real().remove(path(name));
  write(true);
  for (const char* stem : {"ps-0", "worker-0", "worker-7", "client"}) check_task(stem);
}

TEST_F(ClusterCertificatesTest, RenewalNeedsTheCa) {
  EXPECT_THAT(error_of<NotFoundError>([&] { write(true); }),
              AllOf(HasSubstr("ca.key"), HasSubstr("leave out --renew")));
  write();
  const std::string ca = text_of("ca.crt");
  write_credential(path("ca.crt"), make_authority({.common_name = "x", .ends = 2e9}).certificate, false, true);
  EXPECT_THAT(refusal_of([&] { write(true); }), HasSubstr("no CA in " + path("ca.crt")));
  write_credential(path("ca.crt"), ca, false, true);
  clock_.advance(Seconds{3649 * kDayOfCertificates});
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { write(true); }), HasSubstr("the CA expires at"));
}

TEST_F(ClusterCertificatesTest, NoCertificateOutlivesItsCa) {
  write();
  clock_.advance(Seconds{3600 * kDayOfCertificates});
  write(true);
  EXPECT_EQ(facts_of("ps-0.crt").ends, facts_of("ca.crt").ends);
}

TEST_F(ClusterCertificatesTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal_of([&] { write(false, ClusterSpec()); }), HasSubstr("no tasks"));
  EXPECT_THAT(refusal_of([&] { write_cluster_certificates(small_cluster(), {}); }), HasSubstr("no directory"));
  for (const int days : {0, -1, 3651}) {
    EXPECT_THAT(refusal_of([&] { write_cluster_certificates(small_cluster(), {.directory = made_, .days = days}); }),
                HasSubstr(fmt::format("not {}", days)));
  }
  EXPECT_FALSE(FileSystem::real().exists(made_));
}

TEST_F(ClusterCertificatesTest, ADirectoryThatCannotBeMadeIsNamed) {
  write_file_atomically(FileSystem::real(), made_, "a file");
  EXPECT_THAT(error_of<Error>([&] { write(); }), HasSubstr(made_));
}

TEST_F(ClusterCertificatesTest, StandTheChecksOfOpenssl) {
  LONGHAUL_NEEDS("openssl", std::system("openssl version >/dev/null 2>&1") == 0, "there is no command openssl");
  write_cluster_certificates(small_cluster(), {.directory = made_});  // on the clock of the machine, as openssl's
  for (const char* stem : {"ps-0", "worker-0", "worker-7"}) {
    const std::string file = path(std::string(stem) + ".crt");
    for (const char* purpose : {"sslserver", "sslclient"}) {
      EXPECT_EQ(openssl(fmt::format("verify -x509_strict -purpose {} -CAfile {} {}", purpose, path("ca.crt"), file)), 0)
          << said();
    }
  }
  EXPECT_EQ(openssl(fmt::format("verify -verify_ip 10.0.0.3 -CAfile {} {}", path("ca.crt"), path("ps-0.crt"))), 0)
      << said();
  EXPECT_NE(openssl(fmt::format("verify -verify_ip 10.0.0.4 -CAfile {} {}", path("ca.crt"), path("ps-0.crt"))), 0);
  EXPECT_EQ(openssl(fmt::format("verify -verify_hostname worker0.example -CAfile {} {}", path("ca.crt"),
                                path("worker-0.crt"))),
            0)
      << said();
  EXPECT_EQ(openssl(fmt::format("verify -purpose sslclient -CAfile {} {}", path("ca.crt"), path("client.crt"))), 0);
  EXPECT_NE(openssl(fmt::format("verify -purpose sslserver -CAfile {} {}", path("ca.crt"), path("client.crt"))), 0)
      << "a client is no server";
  ASSERT_EQ(openssl(fmt::format("x509 -noout -text -in {}", path("worker-7.crt"))), 0);
  EXPECT_THAT(said(),
              AllOf(HasSubstr("prime256v1"), HasSubstr("DNS:localhost, IP Address:127.0.0.1"), HasSubstr("CA:FALSE"),
                    HasSubstr("TLS Web Server Authentication, TLS Web Client"), Not(HasSubstr("MD5"))));
}

}  // namespace
}  // namespace longhaul

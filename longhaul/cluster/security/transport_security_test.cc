#include "longhaul/cluster/security/transport_security.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/certificates/certificates_fixture.h"
#include "longhaul/cluster/security/openssl_handles.h"
#include "longhaul/cluster/security/renewal_watch.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TransportSecurityTest : public ::testing::Test, public CertificatesFixture {
 protected:
  TransportSecurityTest() {
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      if (level >= LogLevel::kWarning) logged_.push_back(message);
    });
  }
  ~TransportSecurityTest() override { set_log_sink(before_); }

  template <typename Expected = InvalidArgumentError>
  std::string problem_of(const TransportSecurity& wrong) {
    return error_of<Expected>([&] { check_security(wrong, clock); });
  }

  std::vector<std::string> logged_;
  LogSink before_;
};

TEST(LoopbackHost, IsOneOfThisMachineAlone) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host :
       {"", "0.0.0.0", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "localhost.evil", "127.0.0.1.evil"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
  EXPECT_FALSE(is_loopback_host(std::string("127.0.0.1\0.evil", 15)));
  EXPECT_FALSE(is_loopback_host(std::string("::1\0.evil", 9)));
}

TEST_F(TransportSecurityTest, WhatTheCommandMakesIsRight) {
  EXPECT_TRUE(has_tls(security()));
  check_security(security(), clock);
  check_security({}, clock);
  put("token", std::string(64, 'a'));
  TransportSecurity both = security();
  both.token_file = path("token");
  both.verify_client = false;
  check_security(both, clock);
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(TransportSecurityTest, ThreeFilesOrNone) {
  TransportSecurity some = security();
  some.ca_file.clear();
  EXPECT_FALSE(has_tls(some));
  EXPECT_THAT(problem_of(some), HasSubstr("needs certificate_file, key_file and ca_file; missing: ca_file"));
  some.key_file.clear();
  EXPECT_THAT(problem_of(some), HasSubstr("missing: key_file and ca_file"));
}

TEST_F(TransportSecurityTest, NothingThatIsSaidIsIgnored) {
  TransportSecurity insecure = security();
  insecure.insecure = true;
  EXPECT_THAT(problem_of(insecure), HasSubstr("leave out one or the other"));
  EXPECT_THAT(problem_of({.verify_client = false}), HasSubstr("there is no TLS"));
}

TEST_F(TransportSecurityTest, AMissingFileIsNamed) {
  for (const char* name : {"task.crt", "task.key", "ca.crt"}) {
    const std::string file = path(name);
    ASSERT_EQ(::rename(file.c_str(), (file + ".away").c_str()), 0);
    EXPECT_THAT(problem_of<NotFoundError>(security()), HasSubstr(file));
    ASSERT_EQ(::rename((file + ".away").c_str(), file.c_str()), 0);
  }
  EXPECT_THAT(problem_of<NotFoundError>({.token_file = path("none")}), HasSubstr(path("none")));
}

TEST_F(TransportSecurityTest, SecretsAreForTheirOwnerAlone) {
  put("token", std::string(64, 'a'));
  for (const auto& [name, wrong] :
       {std::pair("task.key", security()), std::pair("token", TransportSecurity{.token_file = path("token")})}) {
    for (const mode_t mode : {0640, 0604, 0660, 0602, 0610}) {
      ASSERT_EQ(::chmod(path(name).c_str(), mode), 0);
      EXPECT_THAT(problem_of<PermissionDeniedError>(wrong),
                  AllOf(HasSubstr("others may read or change it"), HasSubstr("chmod 600 " + path(name)),
                        HasSubstr("defaultMode: 0400")))
          << name << " " << mode;
    }
    ASSERT_EQ(::chmod(path(name).c_str(), 0400), 0);
    check_security(wrong, clock);
  }
}

TEST_F(TransportSecurityTest, ALinkIsAsPrivateAsTheFileThatItLeadsTo) {  // as in the volumes of Kubernetes
  ASSERT_EQ(::symlink(path("task.key").c_str(), path("linked.key").c_str()), 0);
  TransportSecurity linked = security();
  linked.key_file = path("linked.key");
  check_security(linked, clock);
}

TEST_F(TransportSecurityTest, FilesAreRegularAndNotEmpty) {
  put("task.crt", "", false);
  EXPECT_THAT(problem_of(security()), AllOf(HasSubstr(path("task.crt")), HasSubstr("empty")));
  put("task.crt", std::string((1 << 20) + 1, 'x'), false);
  EXPECT_THAT(problem_of(security()), HasSubstr("more than 1048576 bytes"));
  ASSERT_EQ(::unlink(path("task.crt").c_str()), 0);
  ASSERT_EQ(::mkfifo(path("task.crt").c_str(), 0600), 0);  // which would wait for a writer
  EXPECT_THAT(problem_of(security()), HasSubstr("not a regular file"));
}

TEST_F(TransportSecurityTest, OtherThanPemIsNamed) {
  const TransportSecurity wrong = security();
  for (const std::string& file : {wrong.certificate_file, wrong.key_file, wrong.ca_file}) {
    put_task("task", authority, now(), now() + 100 * kDayOfCertificates);
    put("ca.crt", authority.certificate, false);
    write_credential(file, "0\x82\x01\x02 not PEM", true, true);
    EXPECT_THAT(problem_of(wrong), AllOf(HasSubstr(file), HasSubstr("it is not PEM")));
    write_credential(file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", true, true);
    EXPECT_THAT(problem_of(wrong), AllOf(HasSubstr(file), HasSubstr("read")));
  }
}

TEST_F(TransportSecurityTest, AKeyWithAPassphraseIsNamed) {
  const std::string pem = make_authority({.common_name = "x", .begins = now(), .ends = now() + 1}).key;
  const BioHandle in = text_source(pem), out(BIO_new(BIO_s_mem()));
  const KeyHandle key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
  char phrase[] = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), phrase, 6, nullptr, nullptr), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  put("task.key", std::string(text, static_cast<size_t>(size)));
  EXPECT_THAT(problem_of(security()), AllOf(HasSubstr(path("task.key")), HasSubstr("needs a passphrase")));
}

TEST_F(TransportSecurityTest, CertificateAndKeyBelongTogether) {
  put_task("other", authority, now(), now() + 100 * kDayOfCertificates);
  TransportSecurity mixed = security();
  mixed.key_file = path("other.key");
  EXPECT_THAT(problem_of(mixed),
              AllOf(HasSubstr(path("other.key")), HasSubstr("does not belong"), HasSubstr(path("task.crt"))));
}

TEST_F(TransportSecurityTest, TheCaHasMadeTheCertificate) {
  put("ca.crt", new_authority().certificate, false);
  EXPECT_THAT(problem_of(security()), AllOf(HasSubstr("no CA in " + path("ca.crt")), HasSubstr(path("task.crt"))));
  put("ca.crt", new_authority().certificate + authority.certificate, false);  // one of several has
  check_security(security(), clock);
}

TEST_F(TransportSecurityTest, TheTimeIsRight) {  // the clock begins at 2020-09-13 12:43:20
  put_task("old", authority, now() - 100, now() - 50);
  EXPECT_THAT(problem_of(security("old")),
              AllOf(HasSubstr(path("old.crt")), HasSubstr("expired at 2020-09-13 12:42:30 UTC"), HasSubstr("--renew")));
  put_task("early", authority, now() + 60, now() + kDayOfCertificates);
  EXPECT_THAT(problem_of(security("early")), AllOf(HasSubstr("not valid before 2020-09-13 12:44:20 UTC"),
                                                   HasSubstr("it is 2020-09-13 12:43:20 UTC"), HasSubstr("clock")));
  put_task("soon", authority, now() - 60, now() + 3 * kDayOfCertificates);
  check_security(security("soon"), clock);
  EXPECT_THAT(logged_, ElementsAre(AllOf(HasSubstr(path("soon.crt")), HasSubstr("in 3.0 days"))));
}

TEST_F(TransportSecurityTest, AnExpiredCaIsNamed) {
  const Certificate old = make_authority({.common_name = "old CA", .begins = now() - 1000, .ends = now() - 50});
  put("ca.crt", old.certificate, false);
  put_task("task", old, now() - 100, now() + 100);
  EXPECT_THAT(problem_of(security()), AllOf(HasSubstr(path("ca.crt")), HasSubstr("expired at")));
}

TEST_F(TransportSecurityTest, ARenewalThatFailsIsLoudOnce) {
  RenewalWatch watch(security(), clock);
  EXPECT_EQ(watch.look(), "");
  put("task.crt", "nothing", false);
  EXPECT_EQ(watch.look(), "") << "it has just looked";
  for (int i = 0; i < 3; ++i) {
    clock.advance(Seconds{61});
    EXPECT_THAT(watch.look(), HasSubstr("it is not PEM"));
  }
  EXPECT_THAT(logged_, ElementsAre(AllOf(HasSubstr(path("task.crt")), HasSubstr("New connections fail"))));
  put_task("task", authority, now(), now() + 100 * kDayOfCertificates);
  clock.advance(Seconds{61});
  EXPECT_EQ(watch.look(), "");
  EXPECT_THAT(logged_, SizeIs(1));
}

TEST(ListenAddress, LoopbackIsAlwaysAllowed) {
  for (const char* address :
       {"127.0.0.1:0", "127.3.4.5:2222", "[::1]:2222", "localhost:0", "LocalHost:1", "[::ffff:127.0.0.1]:5"}) {
    EXPECT_NO_THROW(check_listen_address(address, {})) << address;
  }
}

TEST(ListenAddress, OthersNeedCredentials) {  // unlike SE-6
  for (const char* address : {"0.0.0.0:2222", "[::]:2222", "10.0.0.3:2222", "worker0.example:2222", "128.0.0.1:1",
                              "localhost.example:1", "127.0.0.1.example:1", "[fe80::1]:1", "127.1:1"}) {
    EXPECT_THAT(error_of<PermissionDeniedError>([&] { check_listen_address(address, {}); }),
                AllOf(HasSubstr(std::string("refusing to listen on ") + address),
                      HasSubstr("certificates/JOB-INDEX.crt"), HasSubstr(".insecure = true")));
  }
  EXPECT_THROW(check_listen_address("10.0.0.3", {}), InvalidArgumentError);
}

TEST(ListenAddress, TheRefusalHasTheLinesToAdd) {
  EXPECT_THAT(error_of<PermissionDeniedError>(
                  [] { check_listen_address("10.0.0.3:2222", {}, "/job:worker/replica:0/task:1"); }),
              AllOf(HasSubstr("longhaul certificates --cluster=cluster.json --out=certificates"),
                    HasSubstr(".security = {.certificate_file = \"certificates/worker-1.crt\", "
                              ".key_file = \"certificates/worker-1.key\", .ca_file = \"certificates/ca.crt\"},"),
                    HasSubstr(".security = {.insecure = true},")));
}

TEST_F(TransportSecurityTest, AnyAddressIsAllowedWithTlsOfBothSides) {
  check_listen_address("0.0.0.0:2222", security());
  TransportSecurity one_sided = security();
  one_sided.verify_client = false;
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { check_listen_address("0.0.0.0:2222", one_sided); }),
              HasSubstr("verify_client = false"));
  one_sided.token_file = path("token");
  check_listen_address("0.0.0.0:2222", one_sided);
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(TransportSecurityTest, ATokenAloneIsForLoopback) {
  TransportSecurity token{.token_file = path("token")};
  check_listen_address("127.0.0.1:2222", token);
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { check_listen_address("0.0.0.0:2222", token); }),
              HasSubstr("a token without TLS"));
  token.insecure = true;
  check_listen_address("0.0.0.0:2222", token);
  check_listen_address("0.0.0.0:2222", {.insecure = true});
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("can read the token"), HasSubstr("can run any operation")));
}

TEST_F(TransportSecurityTest, ATokenGoesToOtherMachinesByTlsAlone) {
  TransportSecurity token{.token_file = path("token")};
  for (const char* address : {"127.0.0.1:2222", "[::1]:2222", "localhost:2222"}) check_token_may_go_to(address, token);
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { check_token_may_go_to("10.0.0.3:2222", token); }),
              AllOf(HasSubstr(path("token")), HasSubstr("10.0.0.3:2222"), HasSubstr("ca_file")));
  check_token_may_go_to("10.0.0.3:2222", {});
  token.insecure = true;
  check_token_may_go_to("10.0.0.3:2222", token);
  TransportSecurity both = security();
  both.token_file = path("token");
  check_token_may_go_to("10.0.0.3:2222", both);
}

}  // namespace
}  // namespace longhaul

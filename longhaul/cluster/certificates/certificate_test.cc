#include "longhaul/cluster/certificates/certificate.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "longhaul/base/error.h"
#include "longhaul/cluster/certificates/certificates_fixture.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kCertificateBegin = 1.7e9, kCertificateEnd = 1.8e9;

TEST(CertificateTest, SaysWhatWasAskedFor) {
  const Certificate ca = make_authority({.common_name = "CA", .begins = kCertificateBegin, .ends = kCertificateEnd});
  const std::vector<std::string> names{"worker0.example", "10.0.0.3", "fe80::1", "under_score", "localhost"};
  const Certificate made = make_certificate(
      ca, {.common_name = "/job:worker/task:1", .names = names, .begins = kCertificateBegin, .ends = kCertificateEnd});
  const CertificateFacts facts = facts_of_certificate(made.certificate);
  EXPECT_EQ(facts.common_name, "/job:worker/task:1");
  EXPECT_EQ(facts.names, names);
  EXPECT_EQ(facts.begins, kCertificateBegin);
  EXPECT_EQ(facts.ends, kCertificateEnd);
  EXPECT_THAT(made.key, HasSubstr("-----BEGIN PRIVATE KEY-----"));
}

TEST(CertificateTest, IsAnotherEachTimeButForAGivenKey) {
  const CertificateOptions options{.common_name = "x", .begins = kCertificateBegin, .ends = kCertificateEnd};
  const Certificate ca = make_authority(options), one = make_certificate(ca, options);
  const Certificate other = make_certificate(ca, options);
  EXPECT_NE(one.key, other.key);
  CertificateOptions same = options;
  same.key = one.key;
  const Certificate renewed = make_certificate(ca, same);
  EXPECT_EQ(renewed.key, one.key);
  EXPECT_NE(renewed.certificate, one.certificate) << "its serial number is another";
}

TEST(CertificateTest, RefusesOtherNamesThanThoseOfHosts) {
  const Certificate ca = make_authority({.common_name = "CA", .begins = kCertificateBegin, .ends = kCertificateEnd});
  for (const char* name : {"", "a,DNS:b", "a b", "a:1", "a/b", "[::1]", "a\nb", "e@x"}) {
    EXPECT_THROW(make_certificate(
                     ca, {.common_name = "x", .names = {name}, .begins = kCertificateBegin, .ends = kCertificateEnd}),
                 InvalidArgumentError)
        << name;
  }
}

TEST(CertificateTest, RefusesWhatIsNotPem) {
  const CertificateOptions options{.common_name = "x", .begins = kCertificateBegin, .ends = kCertificateEnd};
  EXPECT_THAT(refusal_of([&] { make_certificate({"no", "no"}, options); }), HasSubstr("certificate cannot be read"));
  const Certificate ca = make_authority(options);
  EXPECT_THAT(refusal_of([&] { make_certificate({ca.certificate, "no"}, options); }), HasSubstr("key cannot be read"));
}

TEST(CertificateTest, LongNamesAreCut) {
  const std::string name(200, 'j');
  const Certificate ca = make_authority({.common_name = name, .begins = kCertificateBegin, .ends = kCertificateEnd});
  EXPECT_EQ(facts_of_certificate(ca.certificate).common_name, name.substr(0, 64));
}

TEST(CertificateTest, TokensAreLongAndDiffer) {
  EXPECT_EQ(make_token().size(), 64u);
  EXPECT_NE(make_token(), make_token());
}

class CredentialWriterTest : public ::testing::Test, public CertificatesFixture {};

TEST_F(CredentialWriterTest, SecretsHaveTheirModeWhateverTheUmask) {
  const mode_t before = ::umask(0277);
  write_credential(path("secret"), "text", true, false);
  write_credential(path("public"), "text", false, false);
  ::umask(0);
  write_credential(path("other"), "text", true, false);
  ::umask(before);
  EXPECT_EQ(mode_of(path("secret")), 0600u);
  EXPECT_EQ(mode_of(path("other")), 0600u);
  EXPECT_EQ(mode_of(path("public")), 0644u);
}

TEST_F(CredentialWriterTest, ReplacesOnlyIfToldTo) {
  write_credential(path("file"), "one", true, false);
  EXPECT_THROW(write_credential(path("file"), "two", true, false), AlreadyExistsError);
  EXPECT_EQ(read_file(FileSystem::real(), path("file")), "one");
  write_credential(path("file"), "three", true, true);
  EXPECT_EQ(read_file(FileSystem::real(), path("file")), "three");
  EXPECT_THAT(FileSystem::real().list(directory.path()), Not(Contains("file.new")));
}

TEST_F(CredentialWriterTest, DoesNotWriteThroughALink) {
  ASSERT_EQ(::symlink(path("victim").c_str(), path("file.new").c_str()), 0);
  ASSERT_EQ(::symlink(path("victim").c_str(), path("file").c_str()), 0);
  EXPECT_THROW(write_credential(path("file"), "text", true, false), AlreadyExistsError);
  write_credential(path("file"), "text", true, true);
  EXPECT_FALSE(FileSystem::real().exists(path("victim")));
  EXPECT_EQ(read_file(FileSystem::real(), path("file")), "text");
}

TEST_F(CredentialWriterTest, LeavesNothingWhereItCannotWrite) {
  EXPECT_THROW(write_credential(path("none/file"), "text", true, false), NotFoundError);
  FileSystem::real().make_directories(path("file"));
  EXPECT_THROW(write_credential(path("file"), "text", true, true), Error);
  EXPECT_FALSE(FileSystem::real().exists(path("file.new")));
}

}  // namespace
}  // namespace longhaul

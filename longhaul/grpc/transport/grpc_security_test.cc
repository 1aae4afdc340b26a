#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "longhaul/grpc/grpc_fixture.h"
#include "longhaul/grpc/raw_channel_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GrpcSecurity : public ::testing::Test {
 protected:
  std::string token_file(const std::string& name, const std::string& token) {
    const std::string path = files_.file(name);
    std::ofstream(path) << token;
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
    return path;
  }
  // A caller of the pair's ps that has other credentials.
  std::shared_ptr<GrpcTransport> caller_with(const GrpcPair& pair, TransportSecurity security) {
    return GrpcTransport::create({.task = "/job:longhaul_client/replica:0/task:0",
                                  .addresses = pair.tasks.addresses(),
                                  .security = std::move(security),
                                  .limits = short_limits()});
  }
  // Whether it comes true within a minute.
  static bool soon(const std::function<bool()>& done) {
    const Seconds end = Clock::real().now() + Seconds{60};
    while (!done()) {
      if (Clock::real().now() > end) return false;
    }
    return true;
  }
  static std::string error_of_call(Transport& caller, const GrpcPair& pair) {
    return coded_error_of([&] { call_and_wait(caller, pair.request("Echo")); });
  }

  testing::TemporaryDirectory files_;
};

TEST_F(GrpcSecurity, ACallNeedsTheToken) {
  const std::string secret = "a-secret-of-twenty-four-letters", wrong = "another-secret-of-thirty-letters";
  GrpcPair pair({.security = {.token_file = token_file("right", secret)}, .limits = patient_limits()});
  EXPECT_EQ(pair.call("Echo").header, "ping");
  const std::string without = error_of_call(*caller_with(pair, {}), pair);
  EXPECT_THAT(without,
              AllOf(HasSubstr("UNAUTHENTICATED: "), HasSubstr("the call has no token"), HasSubstr("token_file")));
  const std::string other = error_of_call(*caller_with(pair, {.token_file = token_file("wrong", wrong)}), pair);
  EXPECT_THAT(other, AllOf(HasSubstr("UNAUTHENTICATED: "), HasSubstr("is not this task's"), HasSubstr("token_file")));
  EXPECT_THAT(without + other, AllOf(Not(HasSubstr(secret)), Not(HasSubstr(wrong))));
  EXPECT_EQ(error_of_call(*caller_with(pair, {.token_file = token_file("same", secret)}), pair), "");
}

// The new one is added as a second line, and then the old one taken out.
TEST_F(GrpcSecurity, ATokenIsReplacedWhileATaskRuns) {
  const std::string old = "a-secret-of-twenty-four-letters", renewed = "another-secret-of-thirty-letters";
  GrpcPair pair({.security = {.token_file = token_file("ps", old)}, .limits = patient_limits()});
  const auto old_caller = caller_with(pair, {.token_file = token_file("old", old)}),
             new_caller = caller_with(pair, {.token_file = token_file("new", renewed)});
  EXPECT_EQ(error_of_call(*old_caller, pair), "");
  EXPECT_THAT(error_of_call(*new_caller, pair), HasSubstr("UNAUTHENTICATED: "));
  token_file("ps", old + "\n" + renewed + "\n");
  EXPECT_TRUE(soon([&] { return error_of_call(*new_caller, pair).empty(); }));
  EXPECT_EQ(error_of_call(*old_caller, pair), "");
  token_file("ps", renewed + "\n");
  EXPECT_TRUE(soon([&] { return !error_of_call(*old_caller, pair).empty(); }));
  EXPECT_THAT(error_of_call(*old_caller, pair), HasSubstr("UNAUTHENTICATED: "));
  EXPECT_EQ(error_of_call(*new_caller, pair), "");
}

TEST_F(GrpcSecurity, ATokenWithoutTlsStaysOnTheMachine) {
  const std::string secret = "a-secret-of-twenty-four-letters";
  const auto caller = GrpcTransport::create({.task = "/job:longhaul_client/replica:0/task:0",
                                             .addresses = {{"192.0.2.1:2222", "192.0.2.1:2222"}},
                                             .security = {.token_file = token_file("token", secret)},
                                             .limits = short_limits()});
  EXPECT_THAT(coded_error_of([&] { call_and_wait(*caller, {.task = "192.0.2.1:2222", .method = "Echo"}); }),
              AllOf(HasSubstr("PERMISSION_DENIED: "), HasSubstr("192.0.2.1:2222"), Not(HasSubstr(secret))));
}

// Certificates as the command `openssl` makes them.
class GrpcOverTls : public GrpcSecurity {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("openssl", std::system("openssl version >/dev/null 2>&1") == 0, "there is no command openssl");
    make_ca("ca");
    make_certificate("ca", "task");
  }

  void run(const std::string& command) {
    const std::string line = "cd '" + files_.path() + "' && " + command + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(line.c_str()), 0) << command;
  }
  void make_ca(const std::string& ca) {
    run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=" + ca + " -keyout " + ca + ".key -out " + ca +
        ".pem");
  }
  void make_certificate(const std::string& ca, const std::string& name) {
    std::ofstream(files_.file(name + ".ext")) << "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
    run("openssl req -newkey rsa:2048 -nodes -subj /CN=" + name + " -keyout " + name + ".key -out " + name + ".csr");
    run("openssl x509 -req -days 2 -in " + name + ".csr -CA " + ca + ".pem -CAkey " + ca +
        ".key -CAcreateserial -out " + name + ".pem -extfile " + name + ".ext");
    EXPECT_EQ(chmod(files_.file(name + ".key").c_str(), 0600), 0);
  }
  TransportSecurity security(const std::string& name = "task", const std::string& ca = "ca") const {
    return {.certificate_file = files_.file(name + ".pem"),
            .key_file = files_.file(name + ".key"),
            .ca_file = files_.file(ca + ".pem")};
  }
};

TEST_F(GrpcOverTls, TasksOfOneCaTrustEachOther) {
  GrpcPair pair({.security = security(), .limits = patient_limits()});
  const Tensor tensor(kUInt8, Shape{1'000'000});
  EXPECT_EQ(pair.call("Echo", {}, {"ping", {tensor}}).header, "ping");
}

TEST_F(GrpcOverTls, ACallerWithoutACertificateOrWithAnotherCasIsRefusedAndToldWhy) {
  GrpcPair pair({.security = security(), .limits = patient_limits()});
  EXPECT_THAT(error_of_call(*caller_with(pair, {}), pair), HasSubstr("UNAVAILABLE: "));
  make_ca("other");
  make_certificate("other", "stranger");
  EXPECT_THAT(error_of_call(*caller_with(pair, security("stranger", "other")), pair), HasSubstr("UNAVAILABLE: "));
  EXPECT_EQ(pair.call("Echo").header, "ping");
}

// All is replaced: the CA, too, so that who had the old files is a stranger afterwards.
TEST_F(GrpcOverTls, FilesThatAreRenewedWhileATaskRunsAreRead) {
  make_certificate("ca", "old");
  run("cp ca.pem old_ca.pem");
  make_ca("new_ca");
  make_certificate("new_ca", "new");
  make_certificate("new_ca", "renewed");
  run("cp new_ca.pem renewed_ca.pem");
  GrpcPair pair({.security = security(), .read_files_again = Seconds{1}, .limits = patient_limits()});
  EXPECT_EQ(pair.call("Echo").header, "ping");
  EXPECT_EQ(error_of_call(*caller_with(pair, security("old", "old_ca")), pair), "");
  EXPECT_THAT(error_of_call(*caller_with(pair, security("new", "new_ca")), pair), HasSubstr("UNAVAILABLE: "));
  run("mv renewed.key task.key && mv renewed.pem task.pem && mv renewed_ca.pem ca.pem");
  EXPECT_TRUE(soon([&] { return error_of_call(*caller_with(pair, security("new", "new_ca")), pair).empty(); }));
  EXPECT_THAT(error_of_call(*caller_with(pair, security("old", "old_ca")), pair), HasSubstr("UNAVAILABLE: "));
  EXPECT_EQ(pair.call("Echo").header, "ping") << "the connection that was open stays";
}

// A client of another program, that believes the server and shows nothing itself.
TEST_F(GrpcOverTls, AClientNeedsNoCertificateIfItWasSaid) {
  constexpr int kUnavailable = 14, kUnimplemented = 12;
  std::stringstream ca;
  ca << std::ifstream(files_.file("ca.pem")).rdbuf();
  for (const bool is_verified : {true, false}) {
    TransportSecurity its = security();
    its.verify_client = is_verified;
    GrpcPair pair({.security = its, .limits = patient_limits()});
    const RawChannel channel("127.0.0.1:" + std::to_string(pair.ps->port()), ca.str());
    EXPECT_EQ(channel.call("/nobody/Serves", "").code, is_verified ? kUnavailable : kUnimplemented);
    EXPECT_EQ(pair.call("Echo").header, "ping") << "tasks show theirs";
  }
}

TEST_F(GrpcOverTls, TheTokenIsAskedForBesides) {
  TransportSecurity both = security();
  both.token_file = token_file("right", "a-secret-of-twenty-four-letters");
  GrpcPair pair({.security = both, .limits = patient_limits()});
  EXPECT_EQ(pair.call("Echo").header, "ping");
  const auto caller = GrpcTransport::create({.task = "/job:longhaul_client/replica:0/task:0",
                                             .addresses = pair.tasks.addresses(),
                                             .security = security(),
                                             .limits = patient_limits()});
  EXPECT_THAT(error_of_call(*caller, pair), HasSubstr("UNAUTHENTICATED: "));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/status/status_access.h"

#include <gmock/gmock.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

// The status with which it is refused; 200: it is not.
int verdict_of(const StatusAccess& access, const HttpRequest& request, HttpAccess wanted) {
  const auto refusal = access.refusal(request, wanted);
  return refusal ? refusal->status : 200;
}

class StatusAccessTest : public ::testing::Test {
 protected:
  StatusAccess with_token(bool is_loopback = true) {
    return {is_loopback, {"trainer.example.org"}, [](std::string_view token) { return token == kToken; }};
  }

  HttpRequest request{.method = "POST", .path = "/stop", .host = "127.0.0.1:8080"};
  HttpRequest allowed{
      .method = "POST", .path = "/stop", .host = "127.0.0.1:8080", .authorization = std::string("Bearer ") + kToken};
};

TEST_F(StatusAccessTest, OnLoopbackEverybodyReadsAndWhoHasTheTokenChanges) {
  const StatusAccess access = with_token();
  EXPECT_EQ(verdict_of(access, request, HttpAccess::kRead), 200);
  EXPECT_EQ(verdict_of(access, request, HttpAccess::kChange), 401);
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 200);
}

TEST_F(StatusAccessTest, BeyondLoopbackAllButProbesAndMetricsNeedTheToken) {
  const StatusAccess access = with_token(/*is_loopback=*/false);
  EXPECT_EQ(verdict_of(access, request, HttpAccess::kProbe), 200);
  EXPECT_EQ(verdict_of(access, request, HttpAccess::kMetric), 200);
  EXPECT_EQ(verdict_of(access, request, HttpAccess::kRead), 401);
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kRead), 200);
}

TEST_F(StatusAccessTest, WithoutATokenNobodyChangesAnything) {
  const StatusAccess access(true, {}, nullptr);
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 403);
  EXPECT_THAT(*access.refusal(allowed, HttpAccess::kChange)->body, HasSubstr("token_file"));
}

TEST_F(StatusAccessTest, AWrongTokenIsRefused) {
  const StatusAccess access = with_token();
  for (const std::string text : {"Bearer ", "Bearer wrong", "bearer", "Basic", "Basic !!!", "Digest 0123456789abcdef",
                                 "0123456789abcdef", "Bearer  0123456789abcdef"}) {
    allowed.authorization = text;
    EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 401) << text;
  }
}

TEST_F(StatusAccessTest, ATokenMayBeThePasswordOfABrowser) {
  EXPECT_EQ(token_of("Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg=="), kToken);  // me:0123456789abcdef
  EXPECT_EQ(token_of("basic OmE6Yg=="), "a:b");                       // :a:b
  EXPECT_EQ(token_of("Basic bWU="), "");
  EXPECT_EQ(token_of("bEARER x"), "x");
}

TEST_F(StatusAccessTest, BeyondLoopbackOptionsNeedAToken) {
  const AccessNames names{"--address", "--token-file", "--allow-host"};
  const auto refusal = [&](const char* address, const std::vector<std::string>& hosts) {
    try {
      access_by_options(parse_listen_address(address, "--address"), hosts, "", names, names);
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("127.0.0.1:80", {"trainer.example.org"}), "");
  EXPECT_THAT(refusal("0.0.0.0:80", {}), ::testing::AllOf(::testing::HasSubstr("--address is \"0.0.0.0:80\""),
                                                          ::testing::HasSubstr("set --token-file")));
  EXPECT_THAT(refusal("127.0.0.1:80", {"http://a"}), ::testing::HasSubstr("--allow-host has \"http://a\""));
  const StatusAccess access = access_by_options(parse_listen_address("127.0.0.1:80", "x"), {}, "", names, names);
  request.host = "evil";
  EXPECT_THAT(*access.refusal(request, HttpAccess::kRead)->body, ::testing::HasSubstr("add the name to --allow-host"));
}

TEST_F(StatusAccessTest, AHostThatIsNotKnownIsRefused) {
  const StatusAccess access = with_token();
  for (const std::string& host :
       std::vector<std::string>{"evil.example.org", "evil.example.org:8080", "127.0.0.1.evil.org", "", "localhost.evil",
                                "trainer.example.org.evil", std::string("127.0.0.1\0.evil:80", 18)}) {
    request.host = host;
    EXPECT_EQ(verdict_of(access, request, HttpAccess::kRead), 421) << host;
    EXPECT_EQ(verdict_of(access, request, HttpAccess::kMetric), 421) << host;
    EXPECT_EQ(verdict_of(access, request, HttpAccess::kProbe), 200) << host;
  }
  for (const std::string host : {"localhost", "LOCALHOST:80", "10.1.2.3:80", "[::1]:80", "[::1]", "Trainer.example.org",
                                 "trainer.example.org.:8080"}) {
    request.host = host;
    EXPECT_EQ(verdict_of(access, request, HttpAccess::kRead), 200) << host;
  }
}

TEST_F(StatusAccessTest, AnotherSiteChangesNothingEvenWithThePasswordOfTheBrowser) {
  const StatusAccess access = with_token();
  allowed.origin = "http://evil.example.org";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 403);
  allowed.origin = "null";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 403);
  allowed.origin = "http://127.0.0.1:8080";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 200);
  allowed.fetch_site = "cross-site";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 403);
  allowed.fetch_site = "same-site";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 403);
  allowed.fetch_site = "same-origin";
  EXPECT_EQ(verdict_of(access, allowed, HttpAccess::kChange), 200);
}

}  // namespace
}  // namespace longhaul

#include "longhaul/status/listen_address.h"

#include <gmock/gmock.h>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ListenAddress, ReadsAddressesOfDigitsAndLocalhost) {
  const ListenAddress four = parse_listen_address("127.0.0.1:8080", "address");
  EXPECT_EQ(four.port, 8080);
  EXPECT_TRUE(four.is_loopback);
  EXPECT_EQ(page_url(four, 81), "http://127.0.0.1:81/");
  EXPECT_TRUE(parse_listen_address("localhost:0", "address").is_loopback);
  EXPECT_TRUE(parse_listen_address("127.8.0.1:1", "address").is_loopback);
  const ListenAddress six = parse_listen_address("[::1]:8080", "address");
  EXPECT_TRUE(six.is_loopback);
  EXPECT_EQ(page_url(six, 8080), "http://[::1]:8080/");
}

TEST(ListenAddress, AllInterfacesAreNotLoopback) {
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_FALSE(parse_listen_address(text, "address").is_loopback) << text;
  }
  EXPECT_EQ(page_url(parse_listen_address("0.0.0.0:1", "address"), 9), "http://127.0.0.1:9/");
}

TEST(ListenAddress, RefusesOthersAndSaysWhatItMustBe) {
  for (const char* text : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                           "127.0.0.1:-1", "example.org:80", "::1:80", "[::1]", "127.0.0.1:80 ", "[127.0.0.1"}) {
    EXPECT_THAT(refusal_of([&] { parse_listen_address(text, "chief.status.address"); }),
                AllOf(HasSubstr("chief.status.address is"), HasSubstr("it must be like \"127.0.0.1:8080\"")))
        << text;
  }
}

TEST(ListenAddress, KnowsWhichHostsAreDigits) {
  for (const char* host : {"127.0.0.1", "10.1.2.3", "[::1]", "::1"}) EXPECT_TRUE(is_numeric_host(host)) << host;
  for (const char* host : {"", "localhost", "1.2.3", "127.0.0.1.evil.org", "[]", "0x7f.1"}) {
    EXPECT_FALSE(is_numeric_host(host)) << host;
  }
  const std::string zero(1, '\0');
  EXPECT_FALSE(is_numeric_host("127.0.0.1" + zero + ".evil.org"));
  EXPECT_FALSE(is_numeric_host("[::1" + zero + "x]"));
}

}  // namespace
}  // namespace longhaul

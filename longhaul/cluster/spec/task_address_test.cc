#include "longhaul/cluster/spec/task_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST(TaskAddress, HasAHostAndAPort) {
  EXPECT_EQ(TaskAddress::parse("localhost:0"), (TaskAddress{"localhost", 0}));
  EXPECT_EQ(TaskAddress::parse("10.0.0.3:65535"), (TaskAddress{"10.0.0.3", 65535}));
  EXPECT_EQ(TaskAddress::parse("[::1]:2222"), (TaskAddress{"::1", 2222}));
  EXPECT_EQ(TaskAddress::parse("[fe80::1%eth0]:2222"), (TaskAddress{"fe80::1%eth0", 2222}));
  EXPECT_EQ(TaskAddress::parse("PS_0.example:2222"), (TaskAddress{"ps_0.example", 2222}));
}

TEST(TaskAddress, IsWrittenAsItIsRead) {
  for (const char* text : {"localhost:0", "ps0:1111", "[::1]:2222", "[fe80::1%eth0]:1", "a.b-c_d:80"}) {
    EXPECT_EQ(TaskAddress::parse(text).to_string(), text);
  }
}

TEST(TaskAddress, SaysWhatIsWrongWithIt) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "want host:port"},
      {"127.0.0.1", "want host:port"},
      {"[::1]", "want host:port"},
      {":2222", "there is no host"},
      {"::1:2222", "stands in brackets"},
      {"ps0:", "the port must be a number"},
      {"ps0:abc", "the port must be a number"},
      {"ps0:-1", "the port must be a number"},
      {"ps0:+1", "the port must be a number"},
      {"ps0: 1", "the port must be a number"},
      {"ps0:1 ", "the port must be a number"},
      {"ps0:65536", "from 0 to 65535"},
      {"ps0:99999999999999999999", "from 0 to 65535"},
      {"a/b:1", "without a scheme or path"},
      {"grpc://ps0:2222", "without a scheme or path"},
      {"a b:1", "letters, digits"},
      {"[]:1", "in brackets stands an IPv6 address"},
      {"[ps0]:1", "in brackets stands an IPv6 address"},
      {"[::1%]:1", "in brackets stands an IPv6 address"},
      {"[::1/64]:1", "in brackets stands an IPv6 address"},
      {std::string("a\0b:1", 5), "letters, digits"},
      {std::string(254, 'a') + ":1", "at most 253"},
      {"[" + std::string(300, ':') + "]:1", "in brackets stands an IPv6 address"},
  };
  for (const auto& [text, why] : cases) {
    const std::string refusal = refusal_of([&] { TaskAddress::parse(text); });
    EXPECT_THAT(refusal, HasSubstr("Could not interpret \"")) << text;
    EXPECT_THAT(refusal, HasSubstr(why)) << text;
    EXPECT_LT(refusal.size(), 600u);
  }
}

}  // namespace
}  // namespace longhaul

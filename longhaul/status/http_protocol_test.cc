#include "longhaul/status/http_protocol.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpProtocolTest : public ::testing::Test {
 protected:
  std::string reply_to(const std::string& text) { return protocol.reply_to(text); }

  HttpRequest seen;
  HttpReply next = text_reply(200, "fine\n");
  HttpProtocol protocol{[this](const HttpRequest& request) {
    seen = request;
    return next;
  }};
};

TEST_F(HttpProtocolTest, ReadsWhatDecidesAndWritesTheReply) {
  const std::string reply = reply_to(
      "POST /stop?now HTTP/1.1\r\nHost: a:1\r\nOrigin: http://b\r\nSec-Fetch-Site: none\r\nAuthorization: Bearer x\r\n"
      "\r\n");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/stop");
  EXPECT_EQ(seen.host, "a:1");
  EXPECT_EQ(seen.origin, "http://b");
  EXPECT_EQ(seen.fetch_site, "none");
  EXPECT_EQ(seen.authorization, "Bearer x");
  EXPECT_FALSE(seen.has_body);
  EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Connection: close\r\n"),
                           HasSubstr("Content-Length: 5\r\n"), HasSubstr("\r\n\r\nfine\n")));
}

TEST_F(HttpProtocolTest, EveryReplyKeepsBrowsersFromLoadingOrShowingIt) {
  EXPECT_THAT(reply_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"),
                    HasSubstr("frame-ancestors 'none'"), HasSubstr("X-Content-Type-Options: nosniff"),
                    HasSubstr("Cache-Control: no-store")));
}

TEST_F(HttpProtocolTest, AHeadHasNoBody) {
  EXPECT_THAT(reply_to("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 5\r\n"), Not(HasSubstr("fine"))));
}

TEST_F(HttpProtocolTest, PartsAndCompressionAreNotHad) {
  std::string ranges = "bytes=0-0";
  for (int i = 0; i < 500; ++i) ranges += ",0-0";
  const std::string reply =
      reply_to("GET / HTTP/1.1\r\nHost: a\r\nrange: " + ranges + "\r\nAccept-Encoding: gzip, br\r\n\r\n");
  EXPECT_THAT(
      reply, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\n\r\nfine\n"), Not(HasSubstr("Content-Encoding"))));
}

TEST_F(HttpProtocolTest, TwoHostsAreNone) {
  reply_to("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n");
  EXPECT_EQ(seen.host, "");
}

TEST_F(HttpProtocolTest, WhatHasABodyIsKnown) {
  const auto has_body = [&](const std::string& header) {
    reply_to("POST / HTTP/1.1\r\nHost: a\r\n" + header + "\r\n\r\n");
    return seen.has_body;
  };
  EXPECT_FALSE(has_body("Content-Length: 0"));
  EXPECT_FALSE(has_body("Content-Length: 1024"));
  for (const char* header : {"Content-Length: 1025", "Content-Length: 99999999999999999999", "Content-Length: -1",
                             "Content-Length: x", "Transfer-Encoding: chunked"}) {
    EXPECT_TRUE(has_body(header)) << header;
  }
}

TEST_F(HttpProtocolTest, AQueryIsDecodedAndBounded) {
  const auto get = [&](const std::string& query) {
    return reply_to("GET /x?" + query + " HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  get("tag=a%2Fb%26c+d&run=0&empty=");
  EXPECT_EQ(seen.path, "/x");
  EXPECT_EQ(seen.query, (HttpQuery{{"tag", "a/b&c d"}, {"run", "0"}, {"empty", ""}}));
  get("x=" + std::string(1024, 'y'));
  EXPECT_EQ(seen.query.at("x").size(), 1024u);
  seen = {};
  std::string many = "a0=1";
  for (int i = 1; i <= 16; ++i) many += "&a" + std::to_string(i) + "=1";
  for (const std::string& wrong :
       {"x=" + std::string(1025, 'y'), std::string(65, 'n') + "=1", many, std::string("run=0&run=1")}) {
    EXPECT_THAT(get(wrong), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << wrong;
  }
  EXPECT_EQ(seen.method, "") << "it was answered";
}

TEST_F(HttpProtocolTest, WhatIsNoRequestIsABadOne) {
  for (const std::string text : {"GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "FROB / HTTP/1.1\r\n\r\n", "\r\n\r\n", "",
                                 "GET / HTTP/1.1\n\n", "GET  / HTTP/1.1 x\r\n\r\n"}) {
    EXPECT_THAT(reply_to(text), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << text;
  }
  EXPECT_EQ(seen.method, "") << "it was answered";
}

TEST_F(HttpProtocolTest, AnErrorIsAReplyThatDoesNotTellIt) {
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  const HttpProtocol failing([](const HttpRequest&) -> HttpReply { throw std::runtime_error("secret"); });
  EXPECT_THAT(failing.reply_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 500 "), Not(HasSubstr("secret"))));
  set_log_sink(before);
}

TEST_F(HttpProtocolTest, SomeRepliesSayWhatToDoNext) {
  next = text_reply(401, "");
  EXPECT_THAT(reply_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("WWW-Authenticate: Basic realm="));
  EXPECT_THAT(reply_to("POST /stop HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("WWW-Authenticate: Bearer realm="))
      << "a button of the page would wait behind a browser's question for a password";
  next = text_reply(405, "");
  next.allow = "POST";
  EXPECT_THAT(reply_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("\r\nAllow: POST\r\n"));
}

}  // namespace
}  // namespace longhaul

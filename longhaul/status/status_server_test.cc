#include "longhaul/status/status_server.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/status/listener.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::StartsWith;

constexpr Seconds kProbeTime{0.1};

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool is_free(int port) {
  try {
    Listener listener(parse_listen_address(fmt::format("127.0.0.1:{}", port), "address"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A server with a probe, a page, a route that waits until the test opens a gate, and one that changes something.
class StatusServerTest : public ::testing::Test {
 protected:
  StatusServerTest()
      : sink_(set_log_sink([this](LogLevel, const std::string& message) {
          MutexLock lock(mutex_);
          log_.push_back(message);
        })) {}
  ~StatusServerTest() override {
    is_open = true;
    server.reset();
    set_log_sink(sink_);
  }

  std::vector<HttpRoute> routes() {
    const auto text = [](const char* words) { return [words](const HttpRequest&) { return text_reply(200, words); }; };
    return {{.path = "/healthz", .access = HttpAccess::kProbe, .answer = text("ok\n")},
            {.path = "/page", .answer = text("page\n")},
            {.path = "/large",
             .answer = [](const HttpRequest&) { return text_reply(200, std::string(size_t{8} << 20, 'x')); }},
            {.path = "/waits",
             .answer =
                 [this](const HttpRequest&) {
                   ++waiting;
                   while (!is_open) std::this_thread::yield();
                   return text_reply(200, "waited\n");
                 }},
            {.method = "POST", .path = "/change", .access = HttpAccess::kChange, .answer = [this](const HttpRequest&) {
               ++changes;
               return text_reply(202, "changed\n");
             }}};
  }

  int start(const HttpLimits& limits = {}, const std::string& address = "127.0.0.1:0") {
    server =
        std::make_unique<StatusServer>(parse_listen_address(address, "address"),
                                       StatusAccess(true, {}, [](std::string_view token) { return token == "secret"; }),
                                       routes(), "status page", limits);
    server->start();
    return server->port();
  }

  std::vector<std::string> log() {
    MutexLock lock(mutex_);
    return log_;
  }

  template <typename Condition>
  static void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  // The median of five, because this machine has other things to do.
  static Seconds time_of_probe(int port) {
    std::vector<Seconds> times;
    for (int i = 0; i < 5; ++i) {
      const Seconds before = Clock::real().now();
      EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
      times.push_back(Clock::real().now() - before);
    }
    std::sort(times.begin(), times.end());
    return times[2];
  }

  const ThreadsEnd threads_end;
  std::atomic<bool> is_open{false};
  std::atomic<int> waiting{0}, changes{0};
  std::unique_ptr<StatusServer> server;

 private:
  Mutex mutex_;
  std::vector<std::string> log_ GUARDED_BY(mutex_);
  const LogSink sink_;
};

TEST_F(StatusServerTest, ServesItsRoutesAndLogsWhere) {
  const int port = start();
  EXPECT_GT(port, 0);
  EXPECT_EQ(body_of(fetch(port, "GET", "/healthz")), "ok\n");
  EXPECT_EQ(body_of(fetch(port, "GET", "/page?x=1")), "page\n");
  EXPECT_THAT(log(), Contains(fmt::format("status page: http://127.0.0.1:{}/", port)));
}

TEST_F(StatusServerTest, SaysWhatThereIsAndHowItIsCalled) {
  const int port = start();
  const std::string missing = fetch(port, "GET", "/stacks");
  EXPECT_EQ(status_of(missing), 404);
  EXPECT_THAT(body_of(missing), AllOf(HasSubstr("GET /page\n"), HasSubstr("POST /change\n")));
  EXPECT_EQ(status_of(fetch(port, "GET", "/change")), 405);
  EXPECT_EQ(status_of(fetch(port, "PUT", "/page")), 405);
  EXPECT_EQ(changes, 0);
}

TEST_F(StatusServerTest, WhatChangesSomethingNeedsTheToken) {
  const int port = start();
  EXPECT_EQ(status_of(fetch(port, "POST", "/change")), 401);
  EXPECT_EQ(status_of(fetch(port, "POST", "/change", "Authorization: Bearer wrong\r\n")), 401);
  EXPECT_EQ(changes, 0);
  EXPECT_EQ(status_of(fetch(port, "POST", "/change", "Authorization: Bearer secret\r\n")), 202);
  EXPECT_EQ(changes, 1);
}

TEST_F(StatusServerTest, AnotherHostIsRefusedButByProbes) {
  const int port = start();
  for (const auto& [path, status] : std::vector<std::pair<std::string, int>>{{"/page", 421}, {"/healthz", 200}}) {
    RawClient client(port);
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: evil.example.org\r\n\r\n", path));
    EXPECT_EQ(status_of(client.receive_all()), status) << path;
  }
}

TEST_F(StatusServerTest, ProbesAreAnsweredAtOnceWhileSlowClientsHoldConnections) {
  const int port = start();
  std::vector<RawClient> slow;
  for (int i = 0; i < 64; ++i) {
    slow.emplace_back(port);
    slow.back().send(i % 2 == 0 ? "GET / HT" : "");
  }
  EXPECT_LT(time_of_probe(port), kProbeTime);
  EXPECT_EQ(status_of(fetch(port, "GET", "/page")), 200);
}

TEST_F(StatusServerTest, ProbesAreAnsweredAtOnceWhileSlowClientsDoNotRead) {
  const int port = start();
  std::vector<RawClient> slow;
  for (int i = 0; i < 64; ++i) {
    slow.emplace_back(port);
    slow.back().send("GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  EXPECT_LT(time_of_probe(port), kProbeTime);
}

TEST_F(StatusServerTest, ProbesAreAnsweredWhileAllThreadsHang) {
  const int port = start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 80; ++i) {
    clients.emplace_back(port);
    clients.back().send("GET /waits HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  eventually([&] { return waiting == 2; });
  EXPECT_LT(time_of_probe(port), kProbeTime);
  EXPECT_EQ(status_of(clients.back().receive_all()), 503) << "more wait than may";
  is_open = true;
  EXPECT_EQ(body_of(clients.front().receive_all()), "waited\n");
}

TEST_F(StatusServerTest, AFloodOfConnectionsIsBoundedAndTheOldestGo) {
  const int port = start({.most_connections = 10, .head = Seconds{600}});
  std::vector<RawClient> flood;
  for (int i = 0; i < 200; ++i) flood.emplace_back(port);
  EXPECT_LT(time_of_probe(port), kProbeTime);
  EXPECT_EQ(flood.front().receive_all(), "");
  flood.back().send("GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(status_of(flood.back().receive_all()), 200) << "the newest had to go";
}

// So many need more descriptors than a process mostly has.
TEST_F(StatusServerTest, ByDefaultThereAreAtMost256ConnectionsOfManyDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit many{.rlim_cur = std::min<rlim_t>(before.rlim_max, 8 * 512), .rlim_max = before.rlim_max};
  LONGHAUL_NEEDS("descriptors", many.rlim_cur >= 8 * 256, "ulimit -Hn is below 2048");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &many), 0);
  const int port = start({.head = Seconds{600}});
  const size_t with_none = open_descriptors();
  std::vector<RawClient> clients;
  for (int i = 0; i < 300; ++i) clients.emplace_back(port);
  EXPECT_EQ(clients[0].receive_all(), "") << "the oldest had to go";
  eventually([&] { return open_descriptors() == with_none + 300 + 256; });
  clients.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(StatusServerTest, ClientsLeaveDescriptorsForTraining) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 160, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const int port = start({.head = Seconds{600}});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<RawClient> flood;
  for (int i = 0; i < 60; ++i) flood.emplace_back(port);
  EXPECT_EQ(flood.front().receive_all(), "") << "an eighth of 160 are 20";
}

// What would look like a probe to one reader and like something else to another.
TEST_F(StatusServerTest, ARequestThatBeginsLikeAWishIsNone) {
  RawClient client(start());
  client.send("Range: /healthz\nGET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(status_of(client.receive_all()), 400);
}

TEST_F(StatusServerTest, AHeadThatDoesNotEndIsRefused) {
  const int port = start();
  for (const std::string begin : {"GET /", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "}) {
    RawClient client(port);
    client.send(begin + std::string(100'000, 'x'));
    EXPECT_EQ(status_of(client.receive_all()), 431) << begin;
  }
  RawClient lines(port);
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 5000; ++i) text += "X: 1\r\n";
  lines.send(text);
  EXPECT_EQ(status_of(lines.receive_all()), 431);
}

TEST_F(StatusServerTest, ALargeBodyIsRefusedAndTheClientLearnsIt) {
  const int port = start();
  RawClient client(port);
  client.send(
      "POST /change HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret\r\nContent-Length: 1000000\r\n\r\n");
  client.send(std::string(100'000, 'x'));
  EXPECT_EQ(status_of(client.receive_all()), 413);
  EXPECT_EQ(changes, 0);
}

TEST_F(StatusServerTest, GarbageIsNoRequest) {
  const int port = start();
  for (const std::string& text :
       {std::string("\x16\x03\x01\x02\x00\x01", 6), std::string(5000, '\0'), std::string("\r\n\r\n"),
        std::string("get / http/1.1\r\n\r\n"), std::string("GARBAGE\r\n\r\n"), std::string("GET /\n\n")}) {
    RawClient client(port);
    client.send(text);
    EXPECT_EQ(status_of(client.receive_all()), 400) << text;
  }
  for (unsigned char byte = 0; byte < 255; ++byte) {
    RawClient client(port);
    client.send(fmt::format("GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", static_cast<char>(byte)));
    EXPECT_THAT(status_of(client.receive_all()), AnyOf(200, 400, 404, 0)) << int{byte};
  }
  EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
}

TEST_F(StatusServerTest, ARequestMayComeInAnyPieces) {
  const int port = start();
  const std::string text = "GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  for (size_t cut = 1; cut < text.size(); ++cut) {
    RawClient client(port);
    client.send(text.substr(0, cut));
    client.send(text.substr(cut));
    ASSERT_EQ(status_of(client.receive_all()), 200) << cut;
  }
}

TEST_F(StatusServerTest, ASlowRequestAndASlowAnswerAreEnded) {
  const int port = start({.head = Seconds{0.2}, .answer = Seconds{0.2}});
  RawClient begun(port), silent(port), asking(port);
  begun.send("GET /");
  asking.send("GET /waits HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(status_of(begun.receive_all()), 408);
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_EQ(status_of(asking.receive_all()), 503);
}

TEST_F(StatusServerTest, AClientThatDoesNotReadIsLeft) {
  const int port = start({.write = Seconds{0.2}});
  const size_t before = open_descriptors();
  RawClient client(port);
  client.send("GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  eventually([&] { return open_descriptors() == before + 2; });  // its end, and the server's
  eventually([&] { return open_descriptors() == before + 1; });  // the server has given up
  EXPECT_LT(client.receive_all().size(), size_t{8} << 20);
}

TEST_F(StatusServerTest, AStopLetsAReplyUnderWayOut) {
  const int port = start();
  RawClient client(port);
  client.send("GET /waits HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  eventually([&] { return waiting == 1; });
  std::thread opens([&] {
    eventually([&] { return is_free(port); });  // the stop has begun
    is_open = true;
  });
  server->stop();
  opens.join();
  EXPECT_EQ(body_of(client.receive_all()), "waited\n");
}

TEST_F(StatusServerTest, AStopDoesNotWaitForWhoHangs) {
  const int port = start();
  RawClient waits(port), silent(port);
  waits.send("GET /waits HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  eventually([&] { return waiting == 1; });
  const Seconds before = Clock::real().now();
  server->stop();
  EXPECT_LT(Clock::real().now() - before, Seconds{5});
  EXPECT_EQ(silent.receive_all(), "");
  is_open = true;
}

TEST_F(StatusServerTest, APortThatIsTakenIsToldAndTriedAgain) {
  const int port = start();
  StatusServer second(parse_listen_address(fmt::format("127.0.0.1:{}", port), "address"),
                      StatusAccess(true, {}, nullptr), routes(), "second page");
  second.start();
  EXPECT_EQ(second.port(), 0);
  EXPECT_THAT(log(),
              Contains(AllOf(HasSubstr("second page: there is none yet"), HasSubstr(fmt::format("port {}", port)),
                             HasSubstr("or take another port"), HasSubstr("tried again in 1 s"))));
  server.reset();
  eventually([&] { return second.port() == port; });
  EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
}

TEST_F(StatusServerTest, ItsDescriptorsAreNotInheritedAndAboveTheStandardOnes) {
  const int port = start();
  RawClient client(port);
  client.send("GET /waits HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  eventually([&] { return waiting == 1; });
  int sockets = 0;
  for (int fd = 0; fd < 1000; ++fd) {
    char target[64] = {};
    if (::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof target - 1) <= 0) continue;
    const std::string name = target;
    if (!name.starts_with("socket:") && name != "anon_inode:[eventfd]") continue;
    ++sockets;
    EXPECT_GT(fd, 2) << name;
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd << " " << name;
  }
  EXPECT_GE(sockets, 4);
}

TEST_F(StatusServerTest, ListensOnIpv6Too) {
  const int port = start({}, "[::]:0");
  EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200) << "by IPv4";
}

}  // namespace
}  // namespace longhaul

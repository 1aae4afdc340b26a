// What a client may take by default, seen from the client.
#include "longhaul/status/http_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "longhaul/base/above_stdio.h"

namespace longhaul {
namespace {

using State = HttpConnection::State;

constexpr Seconds kStart{1000}, kMoment{0.001};

// A connection at whose other end is the test, and a clock that the test moves.
class HttpConnectionTest : public ::testing::Test {
 protected:
  HttpConnectionTest() {
    const AboveStdio above;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_) != 0) std::abort();
    connection.emplace(OwnedSocket(ends_[1]), 1, limits_, kStart);
  }
  ~HttpConnectionTest() override { ::close(ends_[0]); }

  void say(const std::string& text) {
    EXPECT_EQ(::send(ends_[0], text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    connection->work(kStart);
  }
  std::string hear() {
    std::string all(65536, ' ');
    const ssize_t count = ::recv(ends_[0], all.data(), all.size(), 0);
    all.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return all;
  }
  // It is left alone until just before this time, and then not.
  void expect_end_of_patience(Seconds after) {
    const State before = connection->state();
    connection->expire(kStart + after - kMoment);
    EXPECT_EQ(connection->state(), before);
    connection->expire(kStart + after + kMoment);
    EXPECT_NE(connection->state(), before);
  }
  static std::string head_of(size_t bytes) {
    const std::string begin = "GET / HTTP/1.1\r\nX: ", end = "\r\n\r\n";
    return begin + std::string(bytes - begin.size() - end.size(), 'x') + end;
  }

  std::optional<HttpConnection> connection;

 private:
  const HttpLimits limits_{};  // the defaults
  int ends_[2] = {-1, -1};
};

TEST_F(HttpConnectionTest, ARequestHasFiveSecondsToCome) {
  say("GET /");
  expect_end_of_patience(Seconds{5});
  EXPECT_TRUE(hear().starts_with("HTTP/1.1 408 "));
}

TEST_F(HttpConnectionTest, AReplyHasThirtySecondsToBeMade) {
  say("GET / HTTP/1.1\r\n\r\n");
  ASSERT_EQ(connection->state(), State::kAnswering);
  expect_end_of_patience(Seconds{30});
  EXPECT_TRUE(hear().starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpConnectionTest, AClientHasTenSecondsToTakeSomeOfIt) {
  say("GET / HTTP/1.1\r\n\r\n");
  connection->send(std::string(size_t{16} << 20, 'x'), kStart);
  ASSERT_EQ(connection->state(), State::kWriting) << "more than the system keeps";
  expect_end_of_patience(Seconds{10});
  EXPECT_EQ(connection->state(), State::kOver);
}

TEST_F(HttpConnectionTest, AClientThatTakesMoreHasLonger) {
  say("GET / HTTP/1.1\r\n\r\n");
  constexpr size_t kBytes = size_t{16} << 20;
  connection->send(std::string(kBytes, 'x'), kStart);
  size_t taken = 0;
  for (Seconds time{0}; taken < kBytes; time += Seconds{1}) {  // 131 kB a second
    taken += hear().size();
    taken += hear().size();
    connection->work(kStart + time);
    if (connection->state() == State::kWriting) connection->expire(kStart + time);
    ASSERT_NE(connection->state(), State::kOver);
  }
}

TEST_F(HttpConnectionTest, ButNotForEver) {
  say("GET / HTTP/1.1\r\n\r\n");
  connection->send(std::string(size_t{16} << 20, 'x'), kStart);
  Seconds time{0};
  for (; connection->state() == State::kWriting; time += Seconds{1}) {  // 66 kB a second
    hear();
    connection->work(kStart + time);
    connection->expire(kStart + time);
  }
  EXPECT_EQ(connection->state(), State::kOver);
  EXPECT_LE(time, Seconds{180}) << "ten seconds, and 16 MB at 100 kB a second";
}

TEST_F(HttpConnectionTest, AndOneToCloseTheConnection) {
  say("GET / HTTP/1.1\r\n\r\n");
  connection->send("HTTP/1.1 200 OK\r\n\r\n", kStart);
  ASSERT_EQ(connection->state(), State::kDraining);
  expect_end_of_patience(Seconds{1});
  EXPECT_EQ(connection->state(), State::kOver);
}

TEST_F(HttpConnectionTest, AHeadHasAtMostEightKilobytes) {
  say(head_of(8192));
  EXPECT_EQ(connection->take_request(), head_of(8192));
}

TEST_F(HttpConnectionTest, AndNotOneByteMore) {
  say(head_of(8193));
  EXPECT_FALSE(connection->take_request());
  EXPECT_TRUE(hear().starts_with("HTTP/1.1 431 "));
}

}  // namespace
}  // namespace longhaul

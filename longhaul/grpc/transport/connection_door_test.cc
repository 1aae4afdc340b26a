#include "longhaul/grpc/transport/connection_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/grpc/grpc_fixture.h"
#include "longhaul/grpc/tcp_proxy_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// A limit of so many descriptors above those that are open, until the end.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::eventfd(0, EFD_CLOEXEC);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next) + more;
    ::close(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(ConnectionDoor, HandsOnWhatConnects) {
  std::atomic<int> taken{0};
  ConnectionDoor door("localhost:0", Seconds{1});
  EXPECT_GT(door.port(), 0);
  door.open([&](int, int connection) {
    ++taken;
    ::close(connection);
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(RawSocket::connected_to(door.port()).is_closed_within(Seconds{20}));
  EXPECT_EQ(taken, 3);
}

TEST(ConnectionDoor, AnAddressInUseIsRefusedByName) {
  const ConnectionDoor door("127.0.0.1:0", Seconds{1});
  EXPECT_THAT(
      error_of<AlreadyExistsError>([&] { ConnectionDoor("127.0.0.1:" + std::to_string(door.port()), Seconds{1}); }),
      HasSubstr("another process has this port"));
}

TEST(ConnectionDoor, ListensOnAllAddressesOfTheMachine) {
  ConnectionDoor door("0.0.0.0:0", Seconds{1});
  door.open([](int, int connection) { ::close(connection); });
  EXPECT_TRUE(RawSocket::connected_to(door.port()).is_closed_within(Seconds{20}));
}

// gRPC alone would accept no connection any more, once one of these had met the limit.
TEST(ConnectionDoor, APortWithoutDescriptorsServesAgainOnceThereAreSome) {
  Happened told;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& text) {
    if (text.find("hardly any descriptors left") != text.npos) told.add();
  });
  {
    GrpcPair pair;
    pair.call("Echo");
    const auto late = pair.tasks.prepare("/job:late/replica:0/task:0");
    {
      const FewDescriptors few(100);
      std::vector<RawSocket> idle;
      for (int i = 0; i < 60; ++i) idle.push_back(RawSocket::connected_to(pair.ps->port()));
      EXPECT_TRUE(told.reaches(1));
      EXPECT_EQ(pair.call("Echo").header, "ping") << "who is connected already";
    }
    EXPECT_EQ(call_and_wait(*late, pair.request("Echo")).header, "ping") << "who connects anew";
  }
  set_log_sink(before);
}

}  // namespace
}  // namespace longhaul

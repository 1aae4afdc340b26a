#include "longhaul/cluster/shards/shard_writes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

// Calls whose answers are noted.
struct NotedCalls {
  ShardWrites::Call call() {
    return std::make_shared<IncomingCall>(
        "WriteShard", IncomingCall::Caller{"/job:chief/replica:0/task:0", 1}, Seconds{0}, Message{},
        [this](CallReply reply) { answers.push_back(reply.error != nullptr ? "error" : reply.message.header); });
  }
  std::vector<std::string> answers;
};

TEST(ShardWrites, ARepeatedCallGetsTheAnswerOfTheFirst) {
  ShardWrites writes;
  NotedCalls calls;
  EXPECT_TRUE(writes.begin("m", calls.call()));
  EXPECT_FALSE(writes.begin("m", calls.call()));
  EXPECT_TRUE(writes.begin("other", calls.call()));
  EXPECT_TRUE(calls.answers.empty());
  writes.end("m", {.header = "done"}, nullptr);
  EXPECT_EQ(calls.answers, (std::vector<std::string>{"done", "done"}));
  EXPECT_FALSE(writes.begin("m", calls.call()));
  EXPECT_EQ(calls.answers.size(), 3u);
  writes.end("other", {}, std::make_exception_ptr(UnavailableError("gone")));
  EXPECT_EQ(calls.answers.back(), "error");
}

TEST(ShardWrites, OnlyTheLastAreRemembered) {
  ShardWrites writes;
  NotedCalls calls;
  for (int i = 0; i < 150; ++i) {
    EXPECT_TRUE(writes.begin(std::to_string(i), calls.call()));
    writes.end(std::to_string(i), {}, nullptr);
  }
  EXPECT_FALSE(writes.begin("149", calls.call()));
  EXPECT_TRUE(writes.begin("0", calls.call()));
  writes.end("0", {}, nullptr);
}

}  // namespace
}  // namespace longhaul

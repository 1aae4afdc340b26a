#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/defaulted.h"
#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"

namespace longhaul {
namespace {

TEST(Error, EachCodeHasItsOwnClass) {
  for (int number = 1; number <= 16; ++number) {
    const Code code = static_cast<Code>(number);
    try {
      throw_error(code, "text");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code);
      EXPECT_STREQ(e.what(), "text");
    }
  }
  EXPECT_THROW(throw_error(Code::kOutOfRange, ""), OutOfRangeError);
  EXPECT_THROW(throw_error(Code::kDataLoss, ""), DataLossError);
  EXPECT_STREQ(code_name(Code::kUnauthenticated), "UNAUTHENTICATED");
}

TEST(Error, ASystemErrorNamesTheThingAndTheReason) {
  try {
    throw_errno(ENOENT, "open /no/such");
  } catch (const NotFoundError& e) {
    EXPECT_STREQ(e.what(), "open /no/such: No such file or directory");
  }
  EXPECT_THROW(throw_errno(ENOSPC, "write"), ResourceExhaustedError);
}

TEST(Error, AForeignExceptionHasTheUnknownCode) {
  EXPECT_EQ(code_of(std::make_exception_ptr(std::logic_error("x"))), Code::kUnknown);
  EXPECT_EQ(message_of(std::make_exception_ptr(std::logic_error("x"))), "x");
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_THAT(message_of(std::make_exception_ptr(Silent())), ::testing::HasSubstr("an exception without a text"));
  EXPECT_EQ(code_of(nullptr), Code::kOk);
}

TEST(Defaulted, TellsDefaultNoneAndAValueApart) {
  Defaulted<std::string> setting;
  EXPECT_TRUE(setting.is_default());
  setting = kNone;
  EXPECT_TRUE(setting.is_none());
  setting = "this one";
  ASSERT_TRUE(setting.has_value());
  EXPECT_EQ(setting.value(), "this one");
}

TEST(Log, GoesToTheSinkThatIsSet) {
  std::string seen;
  LogSink before = set_log_sink(
      [&](LogLevel level, const std::string& text) { seen += std::to_string(static_cast<int>(level)) + text; });
  log_warning("{} of {}", 1, 2);
  set_log_sink(before);
  EXPECT_EQ(seen, "21 of 2");
}

TEST(Clock, AWaitEndsAtItsTimeout) {
  Mutex mutex;
  CondVar cond;
  MutexLock lock(mutex);
  const Seconds start = Clock::real().now();
  while (Clock::real().now() - start < Seconds{0.002}) Clock::real().wait_for(cond, mutex, Seconds{0.002});
  EXPECT_LT(Clock::real().now() - start, Seconds{10});
}

TEST(Clock, AWaitOfNoNumberEndsAtOnce) {
  Mutex mutex;
  CondVar cond;
  MutexLock lock(mutex);
  const Seconds start = Clock::real().now();
  cond.wait_for(mutex, Seconds{std::nan("")});
  EXPECT_LT(Clock::real().now() - start, Seconds{10});
}

TEST(NamedThread, RunsItsBodyAndIsJoinedByItsDestructor) {
  bool ran = false;
  {
    NamedThread thread("a-name-longer-than-fifteen", [&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

TEST(NamedThread, CountsAsRunningFromBeforeItsStartUntilWhatItHoldsIsDestroyed) {
  const int before = NamedThread::running();
  std::atomic<bool> may_end = false;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  NamedThread thread("counted", [&may_end, held = std::move(held)] {
    while (!may_end) std::this_thread::yield();
  });
  EXPECT_EQ(NamedThread::running(), before + 1);
  thread.detach();
  EXPECT_EQ(NamedThread::running(), before + 1);
  may_end = true;
  const Seconds deadline = Clock::real().now() + Seconds{20};
  while (NamedThread::running() > before && Clock::real().now() < deadline) std::this_thread::yield();
  EXPECT_EQ(NamedThread::running(), before);
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace longhaul

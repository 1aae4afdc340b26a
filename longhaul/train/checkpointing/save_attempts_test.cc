#include "longhaul/train/checkpointing/save_attempts.h"

#include <gmock/gmock.h>

#include <cmath>

#include "longhaul/base/deadline.h"
#include "longhaul/base/error.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/interrupted_clock_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SaveAttemptsTest : public ::testing::Test {
 protected:
  static std::exception_ptr full_disk() { return std::make_exception_ptr(ResourceExhaustedError("the disk is full")); }
  std::string error_after(SaveAttempts& attempts, const std::exception_ptr& error) {
    attempts.failed(error);
    try {
      attempts.raise_if_too_many();
    } catch (const Error& raised) {
      return std::string(code_name(raised.code())) + " " + raised.what();
    }
    return "none";
  }

  testing::FakeClock clock{testing::FakeClock::Waits::kPassTime};
  SaveAttemptsOptions options{.clock = &clock};
};

TEST_F(SaveAttemptsTest, TheStatusSaysHowItGoes) {
  SaveAttempts attempts(options);
  EXPECT_EQ(attempts.status().consecutive_failures, 0);
  EXPECT_EQ(attempts.status().last_error, "");
  attempts.succeeded("m-1");
  clock.advance(Seconds{5});
  EXPECT_EQ(attempts.failed(full_disk()), 1);
  EXPECT_EQ(attempts.failed(full_disk()), 2);
  SaveStatus status = attempts.status();
  EXPECT_EQ(status.consecutive_failures, 2);
  EXPECT_EQ(status.last_error, "the disk is full");
  EXPECT_EQ(status.last_prefix, "m-1");
  EXPECT_EQ(status.last_failure_time - status.last_success_time, 5);
  EXPECT_EQ(attempts.succeeded("m-2"), 2);
  status = attempts.status();
  EXPECT_EQ(status.consecutive_failures, 0);
  EXPECT_EQ(status.last_prefix, "m-2");
  EXPECT_EQ(status.last_error, "the disk is full") << "it is still known what it was";
}

TEST_F(SaveAttemptsTest, EachWaitIsTwiceTheOneBeforeUpToALimit) {
  options.longest_wait = Seconds{5};
  SaveAttempts attempts(options);
  EXPECT_FALSE(attempts.is_retry_due());
  for (const double wait : {1, 2, 4, 5, 5}) {
    attempts.failed(full_disk());
    EXPECT_EQ(attempts.time_to_retry(), Seconds{wait});
    EXPECT_FALSE(attempts.is_retry_due());
    clock.advance(Seconds{wait});
    EXPECT_TRUE(attempts.is_retry_due());
  }
  attempts.succeeded("m");
  EXPECT_FALSE(attempts.is_retry_due());
  attempts.failed(full_disk());
  EXPECT_EQ(attempts.time_to_retry(), Seconds{1});
}

TEST_F(SaveAttemptsTest, NoWaitIsShorterThanAMoment) {
  options.first_wait = Seconds{0};
  for (const double longest : {60.0, 0.0}) {
    options.longest_wait = Seconds{longest};
    SaveAttempts attempts(options);
    attempts.failed(full_disk());
    EXPECT_NEAR(attempts.time_to_retry().count(), kShortestRetryWait.count(), 1e-6);
    EXPECT_FALSE(attempts.is_retry_due());
  }
}

TEST_F(SaveAttemptsTest, NegativeNumbersAreRefusedByName) {
  const auto refusal = [](const SaveAttemptsOptions& wrong) {
    return refusal_of([&] { SaveAttempts attempts(wrong); });
  };
  EXPECT_THAT(refusal({.max_failed_saves = -1}), HasSubstr("saves.max_failed_saves is -1"));
  EXPECT_THAT(refusal({.first_wait = Seconds{-1}}), HasSubstr("saves.first_wait is -1"));
  EXPECT_THAT(refusal({.longest_wait = Seconds{std::nan("")}}), HasSubstr("saves.longest_wait is nan"));
  EXPECT_THAT(refusal({.last_save_timeout = Seconds{-1}}), HasSubstr("saves.last_save_timeout is -1"));
}

TEST_F(SaveAttemptsTest, WithoutALimitNoNumberOfFailuresEndsTheTraining) {
  SaveAttempts attempts(options);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(error_after(attempts, full_disk()), "none");
}

TEST_F(SaveAttemptsTest, SoManyInARowAreTooMany) {
  options.max_failed_saves = 2;
  SaveAttempts attempts(options);
  EXPECT_EQ(error_after(attempts, full_disk()), "none");
  attempts.succeeded("m");
  EXPECT_EQ(error_after(attempts, full_disk()), "none");
  EXPECT_THAT(error_after(attempts, full_disk()),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("2 saves in a row"), HasSubstr("the disk is full")));
}

TEST_F(SaveAttemptsTest, TheErrorIsNotTakenForALostSessionOrTheEndOfTheInput) {
  options.max_failed_saves = 1;
  SaveAttempts attempts(options);
  EXPECT_THAT(error_after(attempts, std::make_exception_ptr(UnavailableError("EBUSY"))), HasSubstr("UNKNOWN"));
  EXPECT_THAT(error_after(attempts, std::make_exception_ptr(AbortedError("x"))), HasSubstr("UNKNOWN"));
  EXPECT_THAT(error_after(attempts, std::make_exception_ptr(OutOfRangeError("x"))), HasSubstr("UNKNOWN"));
  EXPECT_THAT(error_after(attempts, std::make_exception_ptr(std::bad_alloc())), HasSubstr("UNKNOWN"));
}

class Insisting : public SaveAttemptsTest {
 protected:
  // An attempt that fails so often, and then works.
  std::function<bool()> failing(int times) {
    return [this, times] {
      if (++tried > times) return true;
      attempts->failed(full_disk());
      return false;
    };
  }
  int tried = 0;
  std::unique_ptr<SaveAttempts> attempts = std::make_unique<SaveAttempts>(options);
};

TEST_F(Insisting, EndsWithTheFirstThatWorks) {
  const Seconds start = clock.now();
  attempts->insist(failing(3));
  EXPECT_EQ(tried, 4);
  EXPECT_EQ(clock.now() - start, Seconds{1 + 2 + 4});
}

TEST_F(Insisting, EndsWithTheErrorAfterTheTimeout) {
  const Seconds start = clock.now();
  try {
    attempts->insist(failing(1000));
    FAIL();
  } catch (const ResourceExhaustedError& error) {
    EXPECT_STREQ(error.what(), "the last checkpoint could not be saved: the disk is full");
  }
  EXPECT_EQ(tried, 5) << "after waits of 1, 2, 4 and 8 s; 16 more would be too long";
  EXPECT_LE(clock.now() - start, options.last_save_timeout);
}

TEST_F(Insisting, BeginsWithShortWaitsAfterManyFailures) {
  for (int i = 0; i < 100; ++i) attempts->failed(full_disk());
  attempts->insist(failing(2));
  EXPECT_EQ(tried, 3);
}

TEST_F(Insisting, WithATimeoutOfZeroItTriesOnce) {
  EXPECT_THROW(attempts->insist(failing(1000), Seconds{0}), ResourceExhaustedError);
  EXPECT_EQ(tried, 1);
}

TEST_F(Insisting, EndsWithADeadlineThatLeavesNoTimeForAnotherAttempt) {
  Deadline deadline(clock);
  deadline.bring_forward(Seconds{4});
  const Seconds start = clock.now();
  EXPECT_THROW(attempts->insist(failing(1000), std::nullopt, &deadline), ResourceExhaustedError);
  EXPECT_EQ(tried, 3) << "after waits of 1 and 2 s";
  EXPECT_EQ(clock.now() - start, Seconds{3});
}

TEST_F(Insisting, EndsWithADeadlineThatIsSetDuringAWait) {
  InterruptedClock interrupted;
  Deadline deadline(interrupted);
  interrupted.event = [&] { deadline.bring_forward(Seconds{0.5}); };
  options.clock = &interrupted;
  attempts = std::make_unique<SaveAttempts>(options);
  const Seconds start = interrupted.now();
  EXPECT_THROW(attempts->insist(failing(1000), std::nullopt, &deadline), ResourceExhaustedError);
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(interrupted.now(), start);
  interrupted.join();
}

TEST_F(Insisting, EndsWithWhatTheAttemptThrows) {
  EXPECT_THROW(attempts->insist([]() -> bool { throw AbortedError("the session is lost"); }), AbortedError);
}

}  // namespace
}  // namespace longhaul

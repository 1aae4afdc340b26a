#include "tests/soak/expected_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::soak {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RunEnd kKilled{.restored = 300}, kCrashed{.restored = 300, .died = true, .by_signal = true},
    kFailed{.restored = 300, .died = true};
const std::set<int64_t> kWhole{100, 200, 300};

TEST(ExpectedStart, IsTheNewest) {
  EXPECT_THAT(ExpectedStart().of(kWhole), ElementsAre(300));
  EXPECT_THAT(ExpectedStart().of({}), IsEmpty());
}

TEST(ExpectedStart, IsTheNewestHoweverOftenRunsAreKilled) {
  ExpectedStart start;
  for (int i = 0; i < 5; ++i) start.ended(kKilled);
  EXPECT_THAT(start.of(kWhole), ElementsAre(300));
}

TEST(ExpectedStart, IsTheOneBeforeAfterTwoCrashesInARow) {
  ExpectedStart start;
  start.ended(kCrashed);
  EXPECT_THAT(start.of(kWhole), ElementsAre(300));
  start.ended(kCrashed);
  EXPECT_THAT(start.of(kWhole), ElementsAre(200));
  EXPECT_THAT(start.of({300}), ElementsAre(300)) << "one of them is better than none";
}

TEST(ExpectedStart, MayBeTheOneBeforeWhereMoreIsInBetween) {
  ExpectedStart after_kill, after_errors, after_damage;
  after_kill.ended(kCrashed), after_kill.ended(kKilled), after_kill.ended(kCrashed);
  EXPECT_THAT(after_kill.of(kWhole), ElementsAre(300, 200));
  after_errors.ended(kFailed), after_errors.ended(kFailed);
  EXPECT_THAT(after_errors.of(kWhole), ElementsAre(300, 200));
  after_damage.ended(kCrashed), after_damage.ended(kCrashed), after_damage.damaged();
  EXPECT_THAT(after_damage.of(kWhole), ElementsAre(300, 200));
}

TEST(ExpectedStart, ForgetsDeathsOnceMoreIsSaved) {
  ExpectedStart start;
  start.ended(kCrashed), start.ended(kCrashed);
  start.ended({.restored = 200, .saved_another = true});
  EXPECT_THAT(start.of({200, 300, 400}), ElementsAre(400));
  EXPECT_THAT(start.of(kWhole), ElementsAre(300));
}

TEST(ExpectedStart, MayGoBackTwice) {
  ExpectedStart start;
  start.ended(kCrashed), start.ended(kCrashed);
  start.ended({.restored = 200, .died = true, .by_signal = true});
  start.ended({.restored = 200, .died = true, .by_signal = true});
  EXPECT_THAT(start.of(kWhole), ElementsAre(300, 100));
}

}  // namespace
}  // namespace longhaul::soak

#include "longhaul/runtime/state/leases.h"

#include <gtest/gtest.h>

#include <memory>

#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

class LeasesTest : public ::testing::Test {
 protected:
  testing::FakeClock clock_;
  Leases<std::shared_ptr<int>> leases_{clock_};
  std::shared_ptr<int> value_ = std::make_shared<int>(7);
};

TEST_F(LeasesTest, WhatIsAskedForIsKept) {
  leases_.put("a", value_, Seconds{3});
  clock_.advance(Seconds{2});
  EXPECT_EQ(leases_.find("a", Seconds{3}), value_);
  clock_.advance(Seconds{2});
  EXPECT_EQ(leases_.find("a", Seconds{3}), value_) << "the lease was renewed";
  EXPECT_FALSE(leases_.find("b", Seconds{3}));
}

TEST_F(LeasesTest, WhatNobodyAsksForIsDroppedByTheNextCallOfAnybody) {
  leases_.put("a", value_, Seconds{3});
  clock_.advance(Seconds{3});
  EXPECT_EQ(value_.use_count(), 2);
  leases_.find("b", Seconds{3});
  EXPECT_EQ(value_.use_count(), 1);
  EXPECT_FALSE(leases_.find("a", Seconds{3}));
}

TEST_F(LeasesTest, AnIdHasOneValueUntilItIsDropped) {
  leases_.put("a", value_, Seconds{3});
  leases_.put("a", std::make_shared<int>(8), Seconds{3});
  EXPECT_EQ(value_.use_count(), 1);
  EXPECT_EQ(**leases_.find("a", Seconds{3}), 8);
  leases_.drop("a");
  leases_.drop("a");
  EXPECT_FALSE(leases_.find("a", Seconds{3}));
}

}  // namespace
}  // namespace longhaul

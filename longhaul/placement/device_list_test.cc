#include "longhaul/placement/device_list.h"

#include <gmock/gmock.h>

#include "longhaul/placement/placement_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeviceListTest : public PlacementTest {
 protected:
  static std::string found(const DeviceList& devices, const char* wanted) {
    const auto device = devices.find(DeviceSpec::parse(wanted));
    return device ? device->to_string() : "none";
  }
};

TEST_F(DeviceListTest, TheOwnTaskComesFirstThenJobsAndNumbers) {
  EXPECT_EQ(found(devices(), ""), kWorker0);
  EXPECT_EQ(found(devices(), "/task:1"), kPs1);
  EXPECT_EQ(found(devices(), "/job:ps"), kPs0);
  EXPECT_EQ(found(devices(), "/job:chief"), "none");
}

TEST_F(DeviceListTest, TasksAreOrderedByNumberNotAsText) {
  const DeviceList devices(
      {task("/job:ps/replica:0/task:10"), task("/job:ps/replica:0/task:2"), task("/job:worker/replica:0/task:0")},
      DeviceSpec::parse("/job:worker/replica:0/task:0"));
  EXPECT_EQ(found(devices, "/job:ps"), "/job:ps/replica:0/task:2/device:CPU:0");
}

TEST_F(DeviceListTest, FiltersLeaveOutOtherTasksButNeverTheOwn) {  // MA-3
  const DeviceList filtered = devices({"/job:ps", "/job:worker/task:1"});
  EXPECT_EQ(filtered.tasks().size(), 4u);
  const DeviceList only_ps = devices({"/job:ps"});
  EXPECT_EQ(found(only_ps, "/job:worker/task:1"), "none");
  EXPECT_EQ(found(only_ps, "/job:worker"), kWorker0);
  EXPECT_THAT(only_ps.names(), ElementsAre(kPs0, kPs1, kWorker0));
}

TEST_F(DeviceListTest, AMalformedFilterIsNamed) {
  EXPECT_THAT(refusal_of([] { devices({"nonsense"}); }), HasSubstr("device filter: device \"nonsense\""));
}

TEST_F(DeviceListTest, ATaskThatWasNotAskedHasWhateverIsAskedFor) {
  EXPECT_EQ(found(devices(), "/job:ps/gpu:1"), "/job:ps/replica:0/task:0/device:GPU:1");
  const DeviceList asked({task("/job:worker/replica:0/task:0", 7, {"/cpu:0", "/cpu:1"})},
                         DeviceSpec::parse("/job:worker/replica:0/task:0"));
  EXPECT_EQ(found(asked, "/gpu:1"), "none");
  EXPECT_EQ(found(asked, "/cpu:1"), "/job:worker/replica:0/task:0/device:CPU:1");
}

TEST_F(DeviceListTest, WhatIsNoClusterIsRefused) {
  const DeviceSpec own = DeviceSpec::parse("/job:worker/replica:0/task:0");
  EXPECT_THAT(refusal_of([&] { DeviceList({task("/job:ps")}, own); }),
              HasSubstr("'/job:ps' is not the name of a task"));
  EXPECT_THAT(refusal_of([&] { DeviceList({task("/job:ps/replica:0/task:0")}, own); }),
              HasSubstr("own task /job:worker/replica:0/task:0 has no devices"));
  EXPECT_THAT(refusal_of([&] { DeviceList({task(own.to_string()), task(own.to_string())}, own); }),
              HasSubstr("comes twice"));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/placement/placer.h"

#include <gmock/gmock.h>

#include "longhaul/placement/placement_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlacerTest : public PlacementTest {
 protected:
  static Operation colocated(const Scope& scope, const std::string& name, std::vector<std::string> places) {
    return scope.add("NoOp", name, {}, {{"_class", std::move(places)}});
  }
};

TEST_F(PlacerTest, WhatTakesAVariableIsOnItsDevice) {  // GP-2
  const Output v = variable(on("/job:ps/task:1"), "v");
  const Output set = assign(root_, "set", v, constant(root_, "c"));
  const Output read = identity(on("/job:worker"), "v/read", v);
  EXPECT_EQ(device_of(v), kPs1);
  EXPECT_EQ(device_of(set), kPs1);
  EXPECT_EQ(device_of(read), kPs1);
}

TEST_F(PlacerTest, AVariableFollowsAUserThatSaysMore) {  // GP-2
  const Output v = variable(on("/job:ps"), "v");
  const Output set = assign_at("/task:1", "set", v, constant(root_, "c"));
  EXPECT_EQ(device_of(v), kPs1);
  EXPECT_EQ(device_of(set), kPs1);
}

TEST_F(PlacerTest, AUserThatContradictsTheVariableGivesWay) {  // GP-2
  const Output v = variable(on("/job:ps/task:0"), "v");
  const Output set = assign_at("/job:worker/task:1", "set", v, constant(root_, "c"));
  EXPECT_EQ(device_of(set), kPs0);
}

TEST_F(PlacerTest, VariablesOnTwoDevicesInOneOperationAreRefused) {  // GP-3
  const Output v0 = variable(on("/job:ps/task:0"), "v0"), v1 = variable(on("/job:ps/task:1"), "v1");
  const Output value = constant(root_, "c");
  const Operation both = root_.add("ApplyAdagrad", "both", {v0, v1, value, value});
  EXPECT_EQ(refusal_of([&] { place({both}); }),
            "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible "
            "resource devices: /job:ps/task:1 vs /job:ps/task:0. The edge src node is v1 , and the dst node is both");
  EXPECT_EQ(device_of(constant(root_, "other")), kWorker0) << "no other run is refused";
}

TEST_F(PlacerTest, AReportIsWithItsVariablesOrOnTheSessionsOwnTask) {
  const Output v0 = variable(on("/job:ps/task:0"), "v0"), v1 = variable(on("/job:ps/task:1"), "v1");
  const Output other = variable(on("/job:ps/task:1"), "other");
  const Output both = on("/job:ps/task:1").add("ReportUninitializedVariables", "both", {v0, v1}).output();
  EXPECT_EQ(device_of(both), kWorker0);
  EXPECT_EQ(place({both}).device_of(v0.op()).to_string(), kPs0);
  EXPECT_EQ(place({both}).device_of(v1.op()).to_string(), kPs1);
  EXPECT_EQ(device_of(root_.add("ReportUninitializedVariables", "together", {v1, other}).output()), kPs1);
  EXPECT_EQ(device_of(root_.add("ReportUninitializedVariables", "none", {}).output()), kWorker0);
}

TEST_F(PlacerTest, ColocationIsTransitive) {  // GP-4
  const Operation a = on("/job:ps/task:1").add("NoOp", "a");
  const Operation b = colocated(root_, "b", {"loc:@a"});
  const Operation c = colocated(root_, "c", {"loc:@b"});
  EXPECT_EQ(place({c}).device_of(c).to_string(), kPs1);
  EXPECT_EQ(place({b}).device_of(b).to_string(), kPs1);
  EXPECT_EQ(place({a}).device_of(a).to_string(), kPs1);
}

TEST_F(PlacerTest, ContradictoryColocationIsRefused) {  // GP-4
  variable(on("/job:ps/task:0"), "v");
  const Operation c = colocated(on("/job:worker/task:1"), "c", {"loc:@v"});
  EXPECT_EQ(refusal_of([&] { place({c}); }),
            "Cannot colocate nodes node c placed on device /job:worker/task:1 and node v placed on device "
            "/job:ps/task:0: Cannot merge devices with incompatible jobs: '/job:ps/task:0' and '/job:worker/task:1'");
}

TEST_F(PlacerTest, APlaceThatDoesNotExistIsIgnored) {  // GP-4
  const Operation c = colocated(on("/job:ps/task:1"), "c", {"loc:@nobody", "elsewhere"});
  EXPECT_EQ(place({c}).device_of(c).to_string(), kPs1);
}

TEST_F(PlacerTest, ADeviceThatNoTaskHasIsRefused) {  // unlike GP-1, unlike GP-5
  const Output c = constant(on("/job:ps/task:7"), "add");
  EXPECT_EQ(refusal_of([&] { place({c}); }),
            std::string("Cannot assign a device for operation add: node add was explicitly assigned to /job:ps/task:7 "
                        "but available devices are [ ") +
                kPs0 + ", " + kPs1 + ", " + kWorker0 + ", " + kWorker1 +
                " ]. Make sure the device specification refers to a valid device.\n\t [[add]]");
  EXPECT_EQ(device_of(constant(root_, "other")), kWorker0) << "no other run is refused";
}

TEST_F(PlacerTest, AGpuThatNobodyHasIsExplained) {  // unlike GP-5
  devices_ = DeviceList({task("/job:worker/replica:0/task:0", 7, {"/cpu:0"})},
                        DeviceSpec::parse("/job:worker/replica:0/task:0"));
  EXPECT_THAT(refusal_of([&] { device_of(constant(on("/gpu:0"), "c")); }),
              HasSubstr("valid device. The requested device appears to be a GPU, but CUDA is not enabled.\n\t [[c]]"));
}

TEST_F(PlacerTest, SoftPlacementFallsBackToTheCpuOfTheSameTask) {  // unlike GP-6
  devices_ =
      DeviceList({task("/job:worker/replica:0/task:0", 7, {"/cpu:0"}), task("/job:ps/replica:0/task:0", 8, {"/cpu:0"})},
                 DeviceSpec::parse("/job:worker/replica:0/task:0"));
  placer_ = Placer({.allow_soft_placement = true});
  EXPECT_EQ(device_of(constant(on("/job:ps/gpu:3"), "on_ps")), kPs0);
  EXPECT_EQ(device_of(constant(on("/gpu:0"), "here")), kWorker0);
  EXPECT_THAT(refusal_of([&] { device_of(constant(on("/job:ps/task:4/gpu:0"), "nowhere")); }),
              HasSubstr("explicitly assigned to /job:ps/task:4/device:GPU:0 but available devices"));
}

TEST_F(PlacerTest, AConstantGoesToItsOnlyUser) {  // GP-7
  const Output c = constant(root_, "c"), shared = constant(root_, "shared");
  const Output a = join(on("/job:ps/task:1"), "a", {c, shared});
  const Output b = join(on("/job:ps/task:0"), "b", {shared});
  const Placement placement = place({a, b});
  EXPECT_EQ(placement.device_of(c.op()).to_string(), kPs1);
  EXPECT_EQ(placement.device_of(shared.op()).to_string(), kWorker0);
}

TEST_F(PlacerTest, TheShapeOfATensorIsWhereTheTensorIs) {  // GP-7
  const Output shape = root_.add("Shape", "shape", {join(on("/job:ps/task:1"), "a", {constant(root_, "c")})}).output();
  EXPECT_EQ(device_of(shape), kPs1);
}

TEST_F(PlacerTest, WhatNobodyPlacesIsOnTheOwnTask) {  // unlike GP-8, unlike DS-10
  EXPECT_EQ(device_of(variable(root_, "v")), kWorker0);
  EXPECT_EQ(device_of(constant(on("/cpu:0"), "c")), kWorker0);
  EXPECT_EQ(device_of(constant(on("/job:worker"), "w")), kWorker0);
  EXPECT_EQ(device_of(constant(on("/job:ps"), "p")), kPs0);
}

TEST_F(PlacerTest, FiltersNarrowWhatAJobMeans) {  // unlike GP-8
  devices_ = DeviceList(cluster(), DeviceSpec::parse("/job:ps/replica:0/task:0"), {"/job:ps", "/job:worker/task:1"});
  EXPECT_EQ(device_of(constant(on("/job:worker"), "w")), kWorker1);
}

TEST_F(PlacerTest, OnlyTasksThatARunNamesAreUsed) {
  const Output there = join(on("/job:ps/task:1"), "there", {constant(root_, "c")});
  variable(on("/job:ps/task:0"), "not_needed");
  EXPECT_THAT(place({there}).tasks(), ElementsAre("/job:ps/replica:0/task:1"));
}

TEST_F(PlacerTest, AVariableStaysWhereItWasPlacedFirst) {  // unlike GP-1
  const Output v = variable(root_, "v");
  EXPECT_EQ(device_of(v), kWorker0);
  const Output set = assign_at("/job:ps/task:1", "set", v, constant(root_, "c"));
  EXPECT_EQ(device_of(set), kWorker0) << "added later, it goes to the variable";
  placer_.forget();
  EXPECT_EQ(device_of(set), kPs1);
}

TEST_F(PlacerTest, ARunThatDoesNotNeedTheUserFindsTheVariableAtTheSamePlace) {
  const Output v = variable(root_, "v");
  assign_at("/job:ps/task:1", "set", v, constant(root_, "c"));
  EXPECT_EQ(device_of(v), kPs1);
}

TEST_F(PlacerTest, PlacementsAreLogged) {  // GP-9
  const Output v = variable(on("/job:ps/task:1"), "layer/v");
  EXPECT_THAT(place({v}).lines(), ElementsAre(std::string("layer/v: (VariableV2): ") + kPs1));
}

}  // namespace
}  // namespace longhaul

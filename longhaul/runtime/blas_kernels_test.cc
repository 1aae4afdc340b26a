#include "longhaul/runtime/blas_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const BlasFacts kUnknownProcessor{
    .core = "Prescott", .processor = "Some Xeon", .has_avx2 = true, .has_avx512 = true, .is_set = false};

TEST(BlasKernels, OldOnesAreWarnedOfWithTheRemedy) {
  EXPECT_THAT(
      warning_of_old_kernels(kUnknownProcessor),
      AllOf(HasSubstr("Some Xeon"), HasSubstr("kernels for Prescott"), HasSubstr("OPENBLAS_CORETYPE=SkylakeX")));
}

TEST(BlasKernels, WithoutAvx512ThoseForAvx2AreTheRemedy) {
  BlasFacts facts = kUnknownProcessor;
  facts.has_avx512 = false;
  EXPECT_THAT(warning_of_old_kernels(facts), HasSubstr("OPENBLAS_CORETYPE=Haswell"));
}

TEST(BlasKernels, OldOnesSuitAnOldProcessor) {
  BlasFacts facts = kUnknownProcessor;
  facts.has_avx2 = facts.has_avx512 = false;
  EXPECT_EQ(warning_of_old_kernels(facts), "");
}

TEST(BlasKernels, TheUsersChoiceIsNotQuestioned) {
  BlasFacts facts = kUnknownProcessor;
  facts.is_set = true;
  EXPECT_EQ(warning_of_old_kernels(facts), "");
}

TEST(BlasKernels, NewOnesAndOtherLibrariesAreFine) {
  for (const char* core : {"SkylakeX", "Zen", "Haswell", "SapphireRapids", ""}) {
    BlasFacts facts = kUnknownProcessor;
    facts.core = core;
    EXPECT_EQ(warning_of_old_kernels(facts), "") << core;
  }
}

}  // namespace
}  // namespace longhaul

// Tests for needs_test.sh, which says of each what has to come of it: LONGHAUL_HAVE says whether there is what they
// need.
#include "longhaul/testing/needs_fixture.h"

namespace longhaul {
namespace {

TEST(Ordinary, NeedsNothing) {}
TEST(Ordinary, IsSkippedWithoutANeed) {
  GTEST_SKIP() << "just so";
}
TEST(Ordinary, NeedsWhatItsNameDoesNotSay) {
  LONGHAUL_NEEDS("genuine_files", true, "none here");
}
TEST(Genuine, One) {
  LONGHAUL_NEEDS("genuine_files", std::getenv("LONGHAUL_HAVE") != nullptr, "none here");
}
TEST(Genuine, Another) {
  LONGHAUL_NEEDS("genuine_files", std::getenv("LONGHAUL_HAVE") != nullptr, "none here");
}
TEST(Genuine, NeedsNothing) {}
TEST(Genuine, Fails) {
  ADD_FAILURE();
}

}  // namespace
}  // namespace longhaul

// Linked into a program of tests: where one of them was skipped and none has failed, it ends with the status that
// LONGHAUL_SKIP_STATUS names, which ctest sets and shows as skipped. Without that it ends as ever.
#include <gtest/gtest.h>

#include <cstdlib>

namespace longhaul {
namespace {

class SkipStatus : public ::testing::EmptyTestEventListener {
  void OnTestProgramEnd(const ::testing::UnitTest& tests) override {
    const char* const status = std::getenv("LONGHAUL_SKIP_STATUS");
    if (status != nullptr && tests.Passed() && tests.skipped_test_count() > 0) std::exit(std::atoi(status));
  }
};

[[maybe_unused]] const bool is_added = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SkipStatus);
  return true;
}();

}  // namespace
}  // namespace longhaul

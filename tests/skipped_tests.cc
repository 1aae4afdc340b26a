// Linked into each program of tests, so that no test that was skipped looks like one that passed.
//
// ctest sets LONGHAUL_TEST_NEED for such a program (cmake/LonghaulTest.cmake): to the need that all the chosen tests
// have, or to nothing. With a need, the program ends with 77, which ctest shows as skipped, and says how many tests
// were skipped and why; without, a skipped test is a failure. Where the variable is not set, the program ends as ever.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

namespace longhaul {
namespace {

using ::testing::TestInfo;
using ::testing::TestResult;
using ::testing::TestSuite;
using ::testing::UnitTest;

std::string reason_of(const TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    std::string message = result.GetTestPartResult(i).message();  // with an empty line before it, or after it
    if (!result.GetTestPartResult(i).skipped()) continue;
    message.erase(message.find_last_not_of('\n') + 1);
    message.erase(0, message.find_first_not_of('\n'));
    return message;
  }
  return "";
}

template <typename Visit>
void for_each_skipped(const UnitTest& tests, Visit visit) {
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const TestSuite& suite = *tests.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const TestInfo& test = *suite.GetTestInfo(j);
      if (test.result()->Skipped()) visit(test, reason_of(*test.result()));
    }
  }
}

[[noreturn]] void fail(const UnitTest& tests) {
  for_each_skipped(tests, [](const TestInfo& test, const std::string& reason) {
    std::cout << "FAILED: " << test.test_suite_name() << "." << test.name() << " was skipped (" << reason
              << ") among tests without needs; state what it needs with LONGHAUL_NEEDS\n";
  });
  std::exit(1);
}

[[noreturn]] void show_as_skipped(const UnitTest& tests) {
  std::map<std::string, int> counts;
  for_each_skipped(tests, [&](const TestInfo&, const std::string& reason) { ++counts[reason]; });
  for (const auto& [reason, count] : counts) {
    std::cout << "skipped: " << count << (count == 1 ? " test: " : " tests: ") << reason << "\n";
  }
  std::exit(77);
}

class SkippedTests : public ::testing::EmptyTestEventListener {
  void OnTestProgramEnd(const UnitTest& tests) override {
    const char* const need = std::getenv("LONGHAUL_TEST_NEED");
    if (need == nullptr || !tests.Passed()) return;
    if (tests.test_to_run_count() == 0) {
      std::cout << "FAILED: no test has a name of this entry\n";
      std::exit(1);
    }
    if (tests.skipped_test_count() > 0) *need == '\0' ? fail(tests) : show_as_skipped(tests);
  }
};

[[maybe_unused]] const bool is_added = [] {
  UnitTest::GetInstance()->listeners().Append(new SkippedTests);
  return true;
}();

}  // namespace
}  // namespace longhaul

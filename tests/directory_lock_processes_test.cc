#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kHeldVariable = "LONGHAUL_TEST_HELD_DIRECTORY";
constexpr const char* kNoFlockVariable = "LONGHAUL_TEST_WITHOUT_FLOCK";

std::string refusal(const std::string& directory, bool use_flock) {
  try {
    const DirectoryLock lock(directory, {.use_flock = use_flock});
  } catch (const DirectoryLockedError& error) {
    return error.what();
  }
  ADD_FAILURE() << "the directory was taken";
  return "";
}

// Another process that runs this test program, and holds the directory until it is killed.
class Holder {
 public:
  Holder(const std::string& directory, const std::string& output, bool use_flock) {
    ::setenv(kHeldVariable, directory.c_str(), 1);
    if (!use_flock) ::setenv(kNoFlockVariable, "1", 1);
    process_ = std::make_unique<testing::Process>(
        std::vector<std::string>{"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                 "--gtest_filter=DirectoryLockHolder.DISABLED_HoldsItsDirectory"},
        output);
    ::unsetenv(kHeldVariable);
    ::unsetenv(kNoFlockVariable);
    EXPECT_TRUE(process_->prints("held")) << process_->output() << process_->errors();
  }
  void kill() {
    process_->send(SIGKILL);
    EXPECT_EQ(process_->wait(), 128 + SIGKILL);
  }

 private:
  std::unique_ptr<testing::Process> process_;
};

TEST(DirectoryLockHolder, DISABLED_HoldsItsDirectory) {
  const char* const directory = std::getenv(kHeldVariable);
  ASSERT_NE(directory, nullptr);
  const DirectoryLock lock(directory, {.use_flock = std::getenv(kNoFlockVariable) == nullptr});
  fmt::print("held by {}\n", lock.owner().process.pid);
  std::fflush(stdout);
  constexpr unsigned kLongerThanTheTest = 120;
  ::sleep(kLongerThanTheTest);
}

TEST(DirectoryLockOfTwoProcesses, AnotherProcessHasItUntilItIsKilled) {
  const testing::TemporaryDirectory directory, outputs;
  for (const bool use_flock : {true, false}) {
    Holder holder(directory.path(), outputs.file("holder"), use_flock);
    const auto owner = read_owner(FileSystem::real(), directory.path());
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->has_flock, use_flock);
    for (const bool by_flock : {true, false}) {
      EXPECT_THAT(refusal(directory.path(), by_flock), AllOf(HasSubstr("process " + std::to_string(owner->process.pid)),
                                                             HasSubstr("Stop that process first")));
    }
    holder.kill();
    const DirectoryLock lock(directory.path(), {.use_flock = use_flock});
    EXPECT_NO_THROW(lock.check());
  }
}

}  // namespace
}  // namespace longhaul

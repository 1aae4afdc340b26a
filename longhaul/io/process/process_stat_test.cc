#include "longhaul/io/process/process_stat.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

// What the kernel would say of process 7, whose threads have these states.
class ProcessStatTest : public ::testing::Test {
 protected:
  bool is_held_with(const std::string& states) {
    const testing::TemporaryDirectory proc;
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string task = fmt::format("{}/7/task/{}", proc.path(), 7 + i);
      std::filesystem::create_directories(task);
      std::ofstream(task + "/stat") << fmt::format("{} (a) S) {} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 4711 0 0", 7 + i,
                                                   states[i]);
    }
    return is_held(7, proc.path());
  }
};

TEST_F(ProcessStatTest, AProcessIsHeldIfNoneOfItsThreadsCanRun) {
  EXPECT_TRUE(is_held_with("T"));
  EXPECT_TRUE(is_held_with("TTT"));
  EXPECT_TRUE(is_held_with("tt")) << "by a debugger";
  EXPECT_FALSE(is_held_with("tSS")) << "strace sees a call of the main thread";
  EXPECT_FALSE(is_held_with("St"));
  EXPECT_FALSE(is_held_with("")) << "there is none";
}

TEST_F(ProcessStatTest, ThisProcessRuns) {
  ASSERT_TRUE(process_stat(::getpid()).has_value());
  EXPECT_GT(process_stat(::getpid())->start_time, 0u);
  EXPECT_FALSE(is_held(::getpid()));
}

}  // namespace
}  // namespace longhaul

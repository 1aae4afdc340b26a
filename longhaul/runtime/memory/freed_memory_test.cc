#include "longhaul/runtime/memory/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {
namespace {

#if defined(__GLIBC__) && !defined(LONGHAUL_SANITIZED)  // a sanitizer has an allocator of its own

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// 40 MiB in blocks of 2 MiB, as a step's values are.
void one_step() {
  constexpr size_t kBlock = 2 << 20, kBlocks = 20;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    std::memset(blocks.back().get(), 1, kBlock);
  }
}

// Ends the process with status 0 if steps find their memory again, else with 1.
[[noreturn]] void find_memory_again(bool with_session) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // a fault for each page
  Graph graph;
  const auto session = with_session ? new_session("", graph) : nullptr;
  one_step();
  const long before = page_faults();
  constexpr int kSteps = 10;
  for (int i = 0; i < kSteps; ++i) one_step();
  const long of_one_step = (40 << 20) / sysconf(_SC_PAGESIZE);
  std::_Exit(page_faults() - before < of_one_step ? 0 : 1);
}

// Each in a process of its own, which glibc reads the environment for: its thresholds move with what a process has
// freed.
class FreedMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    clear_environment();
  }
  void TearDown() override { clear_environment(); }

 private:
  static void clear_environment() {
    for (const char* name :
         {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"})
      unsetenv(name);
  }
};

TEST_F(FreedMemory, IsKeptForTheNextStepOnceThereIsASession) {
  EXPECT_EXIT(find_memory_again(true), ::testing::ExitedWithCode(0), "");
}

TEST_F(FreedMemory, IsGivenBackByGlibcAlone) {
  EXPECT_EXIT(find_memory_again(false), ::testing::ExitedWithCode(1), "");
}

TEST_F(FreedMemory, WhatTheEnvironmentSaysIsLeftAlone) {
  setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1);
  EXPECT_EXIT(find_memory_again(true), ::testing::ExitedWithCode(1), "");
}

TEST_F(FreedMemory, WhatGlibcsTunablesSayIsLeftAlone) {
  setenv("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072", 1);
  EXPECT_EXIT(find_memory_again(true), ::testing::ExitedWithCode(1), "");
}

TEST_F(FreedMemory, IsKeptWhereTheTunablesAreNotOfMalloc) {
  setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=1024", 1);
  EXPECT_EXIT(find_memory_again(true), ::testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace longhaul

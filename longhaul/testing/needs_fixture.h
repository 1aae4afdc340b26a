#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

// What a test needs and a machine may lack, said at the beginning of the test or in its fixture's SetUp(). Where it is
// lacking, the test is skipped:
//
//   LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
//
// ctest shows that: such tests are an entry of their own, PROGRAM_genuine_files, to which they come by their names
// (cmake/LonghaulTest.cmake lists the needs). In another entry the line fails, on a machine that lacks nothing too.
#define LONGHAUL_NEEDS(need, is_there, why)                                                      \
  do {                                                                                           \
    const char* const entry_need = std::getenv("LONGHAUL_TEST_NEED");                            \
    if (entry_need != nullptr && std::string(entry_need) != (need))                              \
      FAIL() << "it needs " << (need) << ", but this ctest entry is not one of such tests: see"  \
             << " NEEDS of longhaul_test, and the names that cmake/LonghaulTest.cmake requires"; \
    if (!(is_there)) GTEST_SKIP() << (why);                                                      \
  } while (false)

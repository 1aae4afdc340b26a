#include "longhaul/stacks/function_names.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Of internal linkage, so that only the table of all symbols has it.
__attribute__((noinline)) int a_function_of_this_file(int n) {
  return n + 1;
}

TEST(FunctionNames, HasFunctionsOfTheProgramThatAreNotExported) {
  FunctionNames names;
  EXPECT_THAT(names.name_of(reinterpret_cast<uintptr_t>(&a_function_of_this_file)),
              HasSubstr("longhaul::(anonymous namespace)::a_function_of_this_file(int) ("));
}

TEST(FunctionNames, HasFunctionsOfSharedLibraries) {
  FunctionNames names;
  void* const function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  ASSERT_NE(function, nullptr);
  EXPECT_THAT(names.name_of(reinterpret_cast<uintptr_t>(function)),
              AllOf(HasSubstr("gnu_get_libc_version"), HasSubstr("libc.so")));
}

TEST(FunctionNames, AnAddressOfNothingIsANumber) {
  FunctionNames names;
  EXPECT_THAT(names.name_of(16), StartsWith("0x10"));
}

}  // namespace
}  // namespace longhaul

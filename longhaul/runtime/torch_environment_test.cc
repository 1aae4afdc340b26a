#include "longhaul/runtime/torch_environment.h"

#include <gmock/gmock.h>

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

TEST(TorchEnvironment, HasWhatResultsDependOn) {
  const Environment facts = torch_environment();
  for (const char* name : {"libtorch", "compiler", "processor", "vector instructions", "threads"}) {
    ASSERT_THAT(facts, Contains(Key(name)));
    EXPECT_THAT(facts.at(name), Not(IsEmpty())) << name;
  }
  EXPECT_THAT(facts.at("compiler"), AnyOf(StartsWith("GCC "), StartsWith("Clang ")));
  EXPECT_THAT(facts, Not(Contains(Key("threads between operations"))));
}

}  // namespace
}  // namespace longhaul

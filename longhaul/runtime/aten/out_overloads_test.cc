#include "longhaul/runtime/aten/out_overloads.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

// Steps would become slower without a word.
TEST(OutOverloads, ThisLibtorchHasThemAll) {
  for (const std::string& type : types_with_out_overload()) {
    const size_t dot = type.find('.');
    const auto functional = c10::Dispatcher::singleton().findSchema(
        {type.substr(0, dot), dot == std::string::npos ? "" : type.substr(dot + 1)});
    ASSERT_TRUE(functional) << type;
    EXPECT_TRUE(find_out_overload(type, functional->schema())) << type;
  }
}

TEST(OutOverloads, OtherArgumentsAreNotTaken) {
  const auto binary = c10::Dispatcher::singleton().findSchema({"aten::mm", ""});
  ASSERT_TRUE(binary);
  EXPECT_FALSE(find_out_overload("aten::tanh", binary->schema()));
  EXPECT_FALSE(find_out_overload("aten::cat", binary->schema()));
}

}  // namespace
}  // namespace longhaul

#include "longhaul/runtime/torch_environment.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
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

// at::show_config() of PyTorch's wheel 2.15.0, and of Debian's libtorch 1.13.
TEST(TorchEnvironment, HasTheBlasWithinLibtorch) {
  EXPECT_EQ(blas_within("PyTorch built with:\n  - GCC 13.3\n  - C++ Version: 202002\n"
                        "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64 "
                        "architecture applications\n  - Intel(R) MKL-DNN v3.13.3 (Git Hash b38f97eb)\n"),
            "MKL 2024.2");
  EXPECT_EQ(blas_within("PyTorch built with:\n  - GCC 12.2\n  - Intel(R) MKL-DNN v2.6.3 (Git Hash N/A)\n"
                        "  - LAPACK is enabled (usually provided by MKL)\n  - Build settings: BLAS_INFO=generic, \n"),
            "");
  if (at::hasMKL()) {
    EXPECT_THAT(torch_environment(),
                AllOf(Contains(Pair("BLAS", StartsWith("MKL "))), Not(Contains(Key("BLAS threads")))));
  }
}

}  // namespace
}  // namespace longhaul

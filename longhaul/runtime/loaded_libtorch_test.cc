#include "longhaul/runtime/loaded_libtorch.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

const std::string kDebians = "  - Build settings: BLAS_INFO=generic, TORCH_VERSION=1.13.0, USE_CUDA=OFF, \n";

TEST(LoadedLibtorch, IsTheOneThatTheLibraryWasCompiledFor) {
  EXPECT_NO_THROW(require_compiled_libtorch());
}

TEST(LoadedLibtorch, OfAnotherVersionIsNamedWithItsFile) {
  EXPECT_EQ(wrong_libtorch("2.15.0", kDebians, "/usr/lib/libtorch_cpu.so"),
            "this program was compiled for libtorch 2.15.0, and has loaded libtorch 1.13.0 from "
            "/usr/lib/libtorch_cpu.so: look at LD_LIBRARY_PATH and LD_PRELOAD, or build it again");
  EXPECT_NE(wrong_libtorch("1.1.0", kDebians, ""), "") << "1.1 is not 1.13";
}

TEST(LoadedLibtorch, OfAnotherPatchIsRight) {
  EXPECT_EQ(wrong_libtorch("1.13.1", kDebians, ""), "");
  EXPECT_EQ(wrong_libtorch("2.15.0", "TORCH_VERSION=2.15.1a0+git0f1e, USE_CUDA=ON", ""), "");
}

TEST(LoadedLibtorch, ThatDoesNotSayItsVersionIsNotJudged) {
  EXPECT_EQ(wrong_libtorch("2.15.0", "PyTorch built with:\n", ""), "");
}

}  // namespace
}  // namespace longhaul

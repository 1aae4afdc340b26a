#include "longhaul/runtime/blas_kernels.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "longhaul/base/log.h"
#include "longhaul/runtime/torch_environment.h"

extern "C" char* openblas_get_corename() __attribute__((weak));

namespace longhaul {
namespace {

// OpenBLAS's names (driver/others/dynamic.c) of what it takes for x86-64 processors that it does not know.
constexpr std::array<std::string_view, 7> kWithoutAvx2{"Prescott", "Core2",   "Penryn",     "Dunnington",
                                                       "Nehalem",  "Generic", "Sandybridge"};

BlasFacts blas_of_process() {
  BlasFacts facts;
  // A libtorch with MKL within calls no OpenBLAS, also where one is linked.
  if (openblas_get_corename != nullptr && !at::hasMKL()) facts.core = openblas_get_corename();
#ifdef __x86_64__
  facts.has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  facts.has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
  const char* core_type = std::getenv("OPENBLAS_CORETYPE");
  facts.is_set = core_type != nullptr && *core_type != '\0';
  return facts;
}

}  // namespace

std::string warning_of_old_kernels(const BlasFacts& facts) {
  const bool is_old = std::find(kWithoutAvx2.begin(), kWithoutAvx2.end(), facts.core) != kWithoutAvx2.end();
  if (!is_old || !facts.has_avx2 || facts.is_set) return "";
  return fmt::format(
      "OpenBLAS does not know this processor ({}) and uses its kernels for {}, without AVX2. Training may make as "
      "little as a third of the steps. Set OPENBLAS_CORETYPE={} in the environment, or install a newer OpenBLAS; the "
      "rounding of a run continued with other kernels differs",
      facts.processor.empty() ? "without a name" : facts.processor, facts.core,
      facts.has_avx512 ? "SkylakeX" : "Haswell");
}

void warn_of_old_blas_kernels() {
  static std::once_flag looked;
  std::call_once(looked, [] {
    BlasFacts facts = blas_of_process();
    if (warning_of_old_kernels(facts).empty()) return;
    facts.processor = torch_environment()["processor"];
    log_warning("{}", warning_of_old_kernels(facts));
  });
}

}  // namespace longhaul

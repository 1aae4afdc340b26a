#pragma once

#include <string>

namespace longhaul {

// Logs a warning, once per process, if OpenBLAS does not know this processor and uses its kernels for older
// processors: training then makes as little as a third of the steps. OpenBLAS chooses when the program is loaded, so
// only the environment of the next start can change it.
void warn_of_old_blas_kernels();

// The facts that the warning depends on. A parameter, so that tests can pretend to run on another machine.
struct BlasFacts {
  std::string core;       // the processor whose kernels OpenBLAS uses: "Haswell"; empty: OpenBLAS is not used
  std::string processor;  // the name of this one
  bool has_avx2 = false;
  bool has_avx512 = false;
  bool is_set = false;  // by the user: OPENBLAS_CORETYPE
};
// Empty: the kernels suit the processor, or the user chose them.
std::string warning_of_old_kernels(const BlasFacts& facts);

}  // namespace longhaul

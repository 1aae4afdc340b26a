#pragma once

#include <string>

#include "longhaul/session/environment.h"

namespace longhaul {

// The versions of libtorch and the BLAS, the number of threads of each, and the kind of processor.
Environment torch_environment();

// The BLAS that libtorch has within, of what at::show_config() says: "MKL 2024.2". Empty: it has none, and calls the
// one that is linked.
std::string blas_within(const std::string& torch_config);

}  // namespace longhaul

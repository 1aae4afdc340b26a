#pragma once

#include "longhaul/session/environment.h"

namespace longhaul {

// The versions of libtorch and the BLAS, the number of threads of each, and the kind of processor.
Environment torch_environment();

}  // namespace longhaul

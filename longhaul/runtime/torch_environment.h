#pragma once

#include "longhaul/session/environment.h"

namespace longhaul {

// The versions of libtorch and of the BLAS, the kind of processor, and how many threads each uses.
Environment torch_environment();

}  // namespace longhaul

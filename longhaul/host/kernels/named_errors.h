#pragma once

#include "longhaul/base/error.h"
#include "longhaul/host/kernels/host_kernel.h"

namespace longhaul {

// A kernel that runs `body` and prefixes its errors with the operation's name.
template <HostKernel body>
void named_errors(HostCall& call) {
  try {
    body(call);
  } catch (const Error& error) {
    throw_error(error.code(), call.op.name() + ": " + error.what());
  }
}

}  // namespace longhaul

#pragma once

namespace longhaul {

// Makes libtorch's operators known to all graphs, and sessions in this process the default kind. Twice is once. Returns
// true.
bool install_runtime();

namespace internal {
inline const bool kRuntimeInstalled = install_runtime();
}  // namespace internal

}  // namespace longhaul

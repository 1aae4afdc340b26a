#pragma once

namespace longhaul {

// Registers libtorch's operators for all graphs, and makes in-process sessions the default kind. May be called
// repeatedly. Returns true.
bool install_runtime();

namespace internal {
inline const bool kRuntimeInstalled = install_runtime();
}  // namespace internal

}  // namespace longhaul

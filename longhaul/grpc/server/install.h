#pragma once

namespace longhaul {

// Makes the targets of sessions that servers offer known ("local", "grpc://host:port"), besides what install_runtime()
// installs. May be called repeatedly. Returns true.
bool install_servers();

namespace internal {
inline const bool kServersInstalled = install_servers();
}  // namespace internal

}  // namespace longhaul

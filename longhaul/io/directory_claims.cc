#include "longhaul/io/directory_claims.h"

#include "longhaul/io/canonical_directory.h"

namespace longhaul {

DirectoryClaims& DirectoryClaims::of_this_process() {
  static auto* const claims = new DirectoryClaims;
  return *claims;
}

void DirectoryClaims::set(const std::string& directory, const Claim& claim) {
  const std::string key = canonical_directory(directory);
  MutexLock lock(mutex_);
  claims_[key] = claim;
}

std::optional<DirectoryClaims::Claim> DirectoryClaims::find(const std::string& directory) const {
  {
    MutexLock lock(mutex_);
    if (claims_.empty()) return std::nullopt;
  }
  const std::string key = canonical_directory(directory);
  MutexLock lock(mutex_);
  const auto claim = claims_.find(key);
  return claim == claims_.end() ? std::nullopt : std::optional(claim->second);
}

bool DirectoryClaims::holds(const std::string& directory, const std::string& token) const {
  const auto claim = find(directory);
  return claim && claim->is_held && claim->owner.token == token;
}

}  // namespace longhaul

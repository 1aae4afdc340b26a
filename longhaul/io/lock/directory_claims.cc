#include "longhaul/io/lock/directory_claims.h"

#include <exception>

#include "longhaul/base/error.h"
#include "longhaul/io/files/canonical_directory.h"

namespace longhaul {

DirectoryClaims& DirectoryClaims::of_this_process() {
  static auto* const claims = new DirectoryClaims;
  return *claims;
}

void DirectoryClaims::take(const std::string& directory, const OwnerRecord& owner,
                           const std::optional<DirectoryId>& place) {
  const std::string key = canonical_directory(directory), spelled = spelled_directory(directory);
  MutexLock lock(mutex_);
  claims_[key] = {owner, true, place};
  spellings_[spelled] = key;
}

void DirectoryClaims::give_back(const OwnerRecord& owner) {
  MutexLock lock(mutex_);
  for (auto& [key, claim] : claims_) {
    if (claim.owner.token == owner.token) claim.is_held = false;
  }
}

std::optional<DirectoryClaims::Claim> DirectoryClaims::find(const std::string& directory) const {
  {
    MutexLock lock(mutex_);
    if (claims_.empty()) return std::nullopt;
  }
  std::exception_ptr unresolved;
  try {
    if (auto claim = find_resolved(directory)) return claim;
  } catch (const Error&) {
    unresolved = std::current_exception();
  }
  auto claim = find_spelled(directory);
  if (!claim && unresolved) std::rethrow_exception(unresolved);
  return claim;
}

std::optional<DirectoryClaims::Claim> DirectoryClaims::find_resolved(const std::string& directory) const {
  const std::string key = resolved_directory(directory);
  MutexLock lock(mutex_);
  const auto claim = claims_.find(key);
  return claim == claims_.end() ? std::nullopt : std::optional(claim->second);
}

std::optional<DirectoryClaims::Claim> DirectoryClaims::find_spelled(const std::string& directory) const {
  const std::string spelled = spelled_directory(directory);
  MutexLock lock(mutex_);
  const auto key = spellings_.find(spelled);
  return key == spellings_.end() ? std::nullopt : std::optional(claims_.at(key->second));
}

bool DirectoryClaims::holds(const std::string& directory, const std::string& token) const {
  const auto claim = find(directory);
  return claim && claim->is_held && claim->owner.token == token;
}

}  // namespace longhaul

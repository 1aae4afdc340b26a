#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/io/lock/directory_id.h"
#include "longhaul/io/lock/owner_record.h"

namespace longhaul {

// The directories that this process has locked, now or before. Code that writes to one finds the lock here, so the lock
// need not be passed to it. All spellings of a directory are equivalent; a directory that was locked through a link is
// still found by that link even if the link now leads elsewhere or nowhere. Any thread.
class DirectoryClaims {
 public:
  struct Claim {
    OwnerRecord owner;  // this process, as of when it last took the directory
    bool is_held = false;
    std::optional<DirectoryId> place = std::nullopt;  // identifies the directory; nullopt: not known
  };

  static DirectoryClaims& of_this_process();  // never destroyed

  void take(const std::string& directory, const OwnerRecord& owner, const std::optional<DirectoryId>& place);
  void give_back(const OwnerRecord& owner);  // does nothing if a later owner has the directory

  // Throws the system's error if the directory cannot be identified, as it may be one of them.
  std::optional<Claim> find(const std::string& directory) const;
  bool holds(const std::string& directory, const std::string& token) const;

 private:
  std::optional<Claim> find_resolved(const std::string& directory) const;
  std::optional<Claim> find_spelled(const std::string& directory) const;

  mutable Mutex mutex_;
  std::map<std::string, Claim> claims_ GUARDED_BY(mutex_);           // by canonical path
  std::map<std::string, std::string> spellings_ GUARDED_BY(mutex_);  // those paths, by the spelling given
};

}  // namespace longhaul

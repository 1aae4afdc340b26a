#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/io/directory_id.h"
#include "longhaul/io/owner_record.h"

namespace longhaul {

// The directories that this process has locked, now or before, so that whatever writes to one finds its lock without
// being handed it. However a directory is spelled, it is the same; and one that was locked by way of a link is still
// found by it when the link leads nowhere, or somewhere else, since. Any thread.
class DirectoryClaims {
 public:
  struct Claim {
    OwnerRecord owner;  // this process, as it last took the directory
    bool is_held = false;
    std::optional<DirectoryId> place = std::nullopt;  // which one that is; nullopt: not known
  };

  static DirectoryClaims& of_this_process();  // lives for ever

  void take(const std::string& directory, const OwnerRecord& owner, const std::optional<DirectoryId>& place);
  void give_back(const OwnerRecord& owner);  // nothing is done where a later one has the directory

  // What the system throws where it cannot be told which directory this is: it may be one of them.
  std::optional<Claim> find(const std::string& directory) const;
  bool holds(const std::string& directory, const std::string& token) const;

 private:
  std::optional<Claim> find_resolved(const std::string& directory) const;
  std::optional<Claim> find_spelled(const std::string& directory) const;

  mutable Mutex mutex_;
  std::map<std::string, Claim> claims_ GUARDED_BY(mutex_);           // by canonical path
  std::map<std::string, std::string> spellings_ GUARDED_BY(mutex_);  // those paths, by how they were given
};

}  // namespace longhaul

#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/io/owner_record.h"

namespace longhaul {

// The directories that this process has locked, now or before, so that whatever writes to one finds its lock without
// being handed it. However a directory is spelled, it is the same. Any thread.
class DirectoryClaims {
 public:
  struct Claim {
    OwnerRecord owner;  // this process, as it last took the directory
    bool is_held = false;
  };

  static DirectoryClaims& of_this_process();  // lives for ever

  void set(const std::string& directory, const Claim& claim);
  std::optional<Claim> find(const std::string& directory) const;
  bool holds(const std::string& directory, const std::string& token) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, Claim> claims_ GUARDED_BY(mutex_);  // by canonical path
};

}  // namespace longhaul

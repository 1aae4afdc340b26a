#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// While it lives, no other CredentialsTurn of the directory, which is there, can be had, in this process or another.
// FailedPreconditionError: somebody has one. A file system without locks gives one to all.
class CredentialsTurn {
 public:
  explicit CredentialsTurn(const std::string& directory);
  ~CredentialsTurn();
  CredentialsTurn(const CredentialsTurn&) = delete;
  CredentialsTurn& operator=(const CredentialsTurn&) = delete;

 private:
  int directory_ = -1;
};

// Writes a file so that it appears whole or not at all, and is on the disk when this returns. A secret one has mode
// 0600 from its beginning, any other 0644. AlreadyExistsError: it is there, and `replace` is false. Otherwise it is
// replaced. Throws the system's errors; nothing is left then. Whoever writes several that belong together takes a
// CredentialsTurn first.
void write_credential(const std::string& path, std::string_view contents, bool is_secret, bool replace);

}  // namespace longhaul

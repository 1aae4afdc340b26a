#pragma once

#include <optional>
#include <string>

#include "longhaul/io/file.h"
#include "longhaul/io/process_identity.h"

namespace longhaul {

// The owner of a directory: the contents of its file `chief.owner` (docs/formats/owner_record.md). Times are in seconds
// since 1970, by the owner's clock.
struct OwnerRecord {
  std::string token;  // 32 hexadecimal digits, drawn at random by each owner: a record is one's own if its token is
  ProcessIdentity process;
  bool has_flock = false;  // next to the record
  double limit = 60;       // seconds: others consider it dead after a longer silence; positive
  double since = 0;
  double heartbeat = 0;  // the last one
  bool operator==(const OwnerRecord&) const = default;
};

// The file `chief.owner` could be read, but does not hold an owner record; it counts for nothing.
class DamagedOwnerError : public DataLossError {
 public:
  using DataLossError::DataLossError;
};

bool is_owner_limit(double seconds);  // whether it is valid: positive and finite
std::string owner_path(const std::string& directory);

std::string format_owner(const OwnerRecord& owner);
// DamagedOwnerError: the text is not an owner record. `path` is for its message.
OwnerRecord parse_owner(const std::string& text, const std::string& path);

void write_owner(FileSystem& files, const std::string& directory, const OwnerRecord& owner);
// nullopt: there is none. DamagedOwnerError: it cannot be parsed, or is too long. Otherwise throws what the file system
// throws.
std::optional<OwnerRecord> read_owner(FileSystem& files, const std::string& directory);

// "host trainer-3, process 4711, since 2026-11-21 10:45:34 UTC, last heartbeat 2026-11-21 10:51:04 UTC"
std::string describe(const OwnerRecord& owner);

}  // namespace longhaul

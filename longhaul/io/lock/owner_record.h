#pragma once

#include <optional>
#include <string>

#include "longhaul/io/files/file.h"
#include "longhaul/io/process/process_identity.h"

namespace longhaul {

// The owner of a directory: the contents of its file `chief.owner` (docs/formats/owner_record.md). Times are in seconds
// since 1970, by the owner's clock.
struct OwnerRecord {
  std::string token{};  // 32 random hexadecimal digits, by which an owner recognises its record
  ProcessIdentity process{};
  bool has_flock = false;  // whether the owner also holds the flock next to the record
  double limit = 60;       // in seconds, positive: after a longer silence others consider the owner dead
  double since = 0;
  double heartbeat = 0;  // the time of the last heartbeat
  bool operator==(const OwnerRecord&) const = default;
};

// The file `chief.owner` could be read, but does not contain an owner record. Such a file is ignored.
class DamagedOwnerError : public DataLossError {
 public:
  using DataLossError::DataLossError;
};

bool is_owner_limit(double seconds);  // whether a limit is valid: positive and finite
std::string owner_path(const std::string& directory);

std::string format_owner(const OwnerRecord& owner);
// DamagedOwnerError: the text is not an owner record. `path` is for its message.
OwnerRecord parse_owner(const std::string& text, const std::string& path);

void write_owner(FileSystem& files, const std::string& directory, const OwnerRecord& owner);
// nullopt: the directory has no owner record. DamagedOwnerError: the record cannot be parsed, or is too long. Otherwise
// throws what the file system throws.
std::optional<OwnerRecord> read_owner(FileSystem& files, const std::string& directory);

// "host trainer-3, process 4711, since 2026-11-21 10:45:34 UTC, last heartbeat 2026-11-21 10:51:04 UTC"
std::string describe(const OwnerRecord& owner);

}  // namespace longhaul

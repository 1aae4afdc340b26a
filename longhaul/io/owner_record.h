#pragma once

#include <optional>
#include <string>

#include "longhaul/io/file.h"
#include "longhaul/io/process_identity.h"

namespace longhaul {

// Who has a directory: the contents of its file `chief.owner` (docs/formats/owner_record.md). Times are in seconds
// since 1970, by the owner's clock.
struct OwnerRecord {
  std::string token;  // 32 hexadecimal digits, drawn anew by each owner: the record is one's own if this is
  ProcessIdentity process;
  bool has_flock = false;  // beside the record
  double limit = 60;       // seconds: others take it for dead when it was silent for longer; positive
  double since = 0;
  double heartbeat = 0;  // the last one
  bool operator==(const OwnerRecord&) const = default;
};

// A file `chief.owner` that is none, whatever it is: it was read, and counts for nothing.
class DamagedOwnerError : public DataLossError {
 public:
  using DataLossError::DataLossError;
};

bool is_owner_limit(double seconds);  // whether it may be one: positive, and a number
std::string owner_path(const std::string& directory);

std::string format_owner(const OwnerRecord& owner);
// DamagedOwnerError: it is no such text. `path` is for its message.
OwnerRecord parse_owner(const std::string& text, const std::string& path);

void write_owner(FileSystem& files, const std::string& directory, const OwnerRecord& owner);
// nullopt: there is none. DamagedOwnerError: it cannot be parsed, or is too long. Otherwise what the file system
// throws.
std::optional<OwnerRecord> read_owner(FileSystem& files, const std::string& directory);

// "host trainer-3, process 4711, since 2026-11-21 10:45:34 UTC, last heartbeat 2026-11-21 10:51:04 UTC"
std::string describe(const OwnerRecord& owner);

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/clock.h"

namespace longhaul::testing {

// A fault in a program's file operations, and the operations that it affects.
struct PlannedFault {
  enum class Kind {
    kKill,     // the process is killed (SIGKILL) before the operation
    kTorn,     // half of a write reaches the file, then the process is killed
    kNoSpace,  // ENOSPC; half of a write reaches the file
    kIoError,  // EIO, without effect
    kSlow,     // the operation takes longer
    kFlip,     // one bit written or read is flipped, without an error
  };
  enum class Operation { kAny, kCreate, kWrite, kSync, kRename, kLink, kRemove, kSyncDirectory, kOpen, kRead };

  Kind kind = Kind::kKill;
  Operation operation = Operation::kWrite;
  std::string name_part;         // only operations on files whose base name contains this; empty: all
  uint64_t first = 1, last = 1;  // of the matching operations, counted from 1
  Seconds delay{0};              // kSlow

  bool operator==(const PlannedFault&) const = default;
};

// Parses a plan, a comma-separated list of faults:
//
//   fault := kind "@" operation ("(" name_part ")")? ":" first ("-" last | "+")? ("=" milliseconds)?
//   kind := "kill" | "torn" | "enospc" | "eio" | "slow" | "flip"
//   operation := "any" | "create" | "write" | "sync" | "rename" | "link" | "remove" | "sync_directory" |
//                "open" | "read"
//
//   kill@write:17            torn@write(.data-):3        enospc@write:40+
//   eio@sync:2-5             slow@any:1+=20              flip@write(.index):1
//
// Each fault counts its own operations. Only writes can be torn, and only writes and reads can have bits flipped.
// InvalidArgumentError: the text is not a plan; the message says where.
std::vector<PlannedFault> parse_fault_plan(std::string_view text);

std::string to_string(const PlannedFault& fault);  // in the notation of parse_fault_plan()

}  // namespace longhaul::testing

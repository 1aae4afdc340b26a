#pragma once

#include "longhaul/placement/run_split.h"

namespace longhaul {

// Makes messages of the transfers of a run: all that one task sends to another between two moments at which it waits,
// or may: at the first receive from a message, at an operation that may wait for another run (kMayWait), or when it has
// come to its writes. A message leaves with the last of its values; nothing of it depends on what the sender has yet to
// receive, so nobody waits in a circle. It ends at kMostBundleBytes as far as shapes are known.
//
// What only says that an operation has run needs no message of its own if one with values leaves after it.
void bundle_transfers(RunSplit& split);

inline constexpr int64_t kMostBundleBytes = int64_t{1} << 20;

}  // namespace longhaul

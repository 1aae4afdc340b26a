#pragma once

#include <string>

#include "longhaul/base/error.h"

namespace longhaul {

class SnapshotKeeping;
class StepFetching;
class StepWatching;

// What a session can do besides its runs: an interface for each capability, null where the session lacks it. A session
// of this process has them all; one whose graph runs elsewhere has those that the processes there offer. They live as
// long as the session, and any thread may call them. A session that hands its runs on to another one returns the other
// one's capabilities, with itself in place of those that it provides.
//
//   if (StepFetching* fetching = session.capabilities().step_fetching) fetching->request_step_fetch(...);
struct SessionCapabilities {
  StepFetching* step_fetching = nullptr;        // session/step_fetch.h
  StepWatching* step_watching = nullptr;        // session/step_watch.h
  SnapshotKeeping* snapshot_keeping = nullptr;  // session/snapshots.h; snapshots_of() does without
};

// The capability, for callers that cannot do without it. UnimplementedError with the text `lacking`: it is null. The
// text names what asks for the capability, what the session lacks, and what to do instead.
template <typename Capability>
Capability& required_capability(Capability* capability, const std::string& lacking) {
  if (capability == nullptr) throw UnimplementedError(lacking);
  return *capability;
}

}  // namespace longhaul

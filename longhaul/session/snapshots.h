#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// The snapshots of a session's variables, as savers take them, and the memory that they need. A snapshot is no copy: it
// holds the variables' own buffers. The first update of a variable that is held writes into another buffer, and the old
// one is free when the snapshot lets go of it:
//
//   the variable's --take--> held too --an update--> held alone --let go--> free --an update during the next
//   snapshot--> the variable's
//
// While anybody has this object, free buffers are kept, so that after the first one a save costs no page faults; with
// the last holder they go back to the system. SessionOptions::snapshot_memory bounds what is held alone or free. Any
// thread.
//
//   const std::shared_ptr<Snapshots> snapshots = snapshots_of(session);  // kept from save to save
//   std::vector<Tensor> values = snapshots->take(session, fetches);
//   for (Tensor& value : values) {
//     write(value);
//     value = Tensor();   // lets go
//   }
class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // session.run(fetches) at one moment between two steps (RunOptions::snapshot), with its errors. Whoever lets go of
  // the values must not need a training step for it: if updates would take more than snapshot_memory, the steps wait.
  virtual std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) = 0;

  // For how long this thread's last take() waited for the steps under way to end, and held no step up: those of a bound
  // module compute meanwhile.
  virtual Seconds last_wait() const { return Seconds{0}; }

  // Gets as many free buffers as the updates during a snapshot can take, and touches them: then even the first save
  // costs no page faults. Training goes on meanwhile. It takes a second or two for a GiB, and gives up when `stop` says
  // so.
  virtual void prepare(const std::function<bool()>& stop) = 0;

  // Of the buffers that are free.
  virtual uint64_t bytes_free() const = 0;
};

// Sessions that keep memory for their snapshots (SessionCapabilities::snapshot_keeping). Any thread.
class SnapshotKeeping {
 public:
  virtual ~SnapshotKeeping() = default;

  // The same object for all who have it at a time. It may outlive the session.
  virtual std::shared_ptr<Snapshots> snapshots() = 0;
};

// How savers read the variables of any session: what it keeps, or else plain_snapshots().
std::shared_ptr<Snapshots> snapshots_of(Session& session);

// For sessions that keep no buffers: take() is the run alone.
std::shared_ptr<Snapshots> plain_snapshots();

}  // namespace longhaul

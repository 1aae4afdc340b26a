#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// The snapshots that savers take of a session's variables, and their memory. A snapshot is not a copy: it holds the
// variables' own buffers. The first update of a held variable writes to another buffer, and the old buffer becomes free
// when the snapshot releases it:
//
//   the variable's --take--> held too --an update--> held alone --release--> free --an update during the next
//   snapshot--> the variable's
//
// While this object is referenced, free buffers are kept, so that saves after the first cost no page faults. When the
// last reference is gone, they return to the system. SessionOptions::snapshot_memory limits the buffers that are held
// alone or free. Any thread may call.
//
//   const std::shared_ptr<Snapshots> snapshots = snapshots_of(session);  // kept from save to save
//   std::vector<Tensor> values = snapshots->take(session, fetches);
//   for (Tensor& value : values) {
//     write(value);
//     value = Tensor();   // releases it
//   }
class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // Calls session.run(fetches) between two steps (RunOptions::snapshot), and throws what that throws. Releasing the
  // values must not depend on a training step, because steps wait if updates would take more than snapshot_memory.
  virtual std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) = 0;

  // The time for which this thread's last take() waited for steps under way without stalling them: the steps of a bound
  // program continue to compute during that time.
  virtual Seconds last_wait() const { return Seconds{0}; }

  // Allocates as many free buffers as the updates during a snapshot can take, and touches them, so that even the first
  // save costs no page faults. Takes a second or two per GiB, while training continues. Stops early when `stop` returns
  // true.
  virtual void prepare(const std::function<bool()>& stop) = 0;

  // The size of the free buffers.
  virtual uint64_t bytes_free() const = 0;
};

// Implemented by sessions that keep memory for their snapshots (SessionCapabilities::snapshot_keeping). Any thread.
class SnapshotKeeping {
 public:
  virtual ~SnapshotKeeping() = default;

  // Returns the same object as long as anything references it. The object may outlive the session.
  virtual std::shared_ptr<Snapshots> snapshots() = 0;
};

// For savers, which read the variables of any session: returns the session's own snapshots, or plain_snapshots() if it
// has none.
std::shared_ptr<Snapshots> snapshots_of(Session& session);

// For sessions that keep no buffers: take() is just the run.
std::shared_ptr<Snapshots> plain_snapshots();

}  // namespace longhaul

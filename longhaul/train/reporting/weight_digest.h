#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/thread.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/session/session.h"

namespace longhaul {

class Deadline;

// The tag of digests in event files; a digest is a text like "crc64:995dc9bbdf1939fa".
inline constexpr const char* kWeightDigestTag = "longhaul/weight_digest";

struct NamedTensor {
  std::string name;
  Tensor value;
};

// The CRC-64/XZ (io/records/crc64.h) of all tensors in the order of their names: for each, its name, a NUL, its dtype's
// name, a NUL, its shape as "[2,3]", a NUL, and its bytes in row-major order, little-endian; for a string tensor, each
// string's size as 8 bytes, then the string. Two runs with the same digest at a step have the same bits, except with a
// probability of 1 in 10^19.
std::string weight_digest(std::vector<NamedTensor> tensors);

inline constexpr Seconds kDigestTimeout{60};

// Writes digests of all global variables of a graph to event files. take() takes a snapshot of them, which copies
// nothing (session/snapshots.h; within SessionOptions::snapshot_memory). A thread of this object reads the bytes, and
// releases each variable once it is read. So training waits only if a digest is still unfinished when the next but one
// is requested.
//
// One thread at a time may call. take(), finish() and the destructor wait for the thread for at most `timeout`, because
// event files on a hanging disk must not stop training. After that, a digest is missing, which is logged, or the thread
// is left behind with the values that it holds. They wait for half of the time until the deadline at most, even if that
// is set meanwhile; the other half is for what follows.
class WeightDigests {
 public:
  // `global_step` gives each digest its step. The deadline outlives this object; nullptr: none.
  WeightDigests(const Graph& graph, Output global_step, std::shared_ptr<FileWriter> writer,
                Seconds timeout = kDigestTimeout, const Deadline* deadline = nullptr);
  ~WeightDigests();
  WeightDigests(const WeightDigests&) = delete;
  WeightDigests& operator=(const WeightDigests&) = delete;

  // Throws what a snapshot's run throws. FailedPreconditionError: a variable has no value yet.
  void take(Session& session);

  // The same, if the step is due. If training resumes at a step that is due, its digest is written again, because the
  // process may have been killed while writing it.
  void take_if_due(Session& session, int64_t every);

  // Waits until all digests are written. Returns false if some could not be written. The second form has a deadline of
  // its own.
  bool finish() { return finish(deadline_); }
  bool finish(const Deadline* deadline);

 private:
  class Worker;

  const Seconds timeout_;
  const Deadline* const deadline_;
  std::vector<std::string> names_;
  std::vector<Fetch> fetches_;            // the variables and, last, the step
  const std::shared_ptr<Worker> worker_;  // its thread shares it
  NamedThread thread_;
};

}  // namespace longhaul

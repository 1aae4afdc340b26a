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

// The tag of digests in event files, a text like "crc64:995dc9bbdf1939fa".
inline constexpr const char* kWeightDigestTag = "longhaul/weight_digest";

struct NamedTensor {
  std::string name;
  Tensor value;
};

// The CRC-64/XZ (io/crc64.h) of all tensors in the order of their names: for each, its name, a NUL, its dtype's name, a
// NUL, its shape as "[2,3]", a NUL, and its bytes in row-major order, little-endian; of a string tensor, for each
// string its size as 8 bytes and the string. Two runs with the same digest at a step have, but for one chance in 10^19,
// the same bits.
std::string weight_digest(std::vector<NamedTensor> tensors);

inline constexpr Seconds kDigestTimeout{60};

// Writes digests of all global variables of a graph into event files. A call of take() holds them as they are at one
// moment between two steps, which copies nothing (session/snapshots.h: within SessionOptions::snapshot_memory); a
// thread of this object reads the bytes, and lets go of each variable when it is read. So the training waits only where
// it is asked for the next one but one before a digest is done.
//
// One thread calls. Whoever waits for the thread, in take(), finish() or the destructor, does so for `timeout` at
// most: event files on a disk that hangs are no reason to stand still. Then a digest is missing, which is logged, or
// the thread is left to itself, with what it holds.
class WeightDigests {
 public:
  // `global_step` gives each digest its step.
  WeightDigests(const Graph& graph, Output global_step, std::shared_ptr<FileWriter> writer,
                Seconds timeout = kDigestTimeout);
  ~WeightDigests();
  WeightDigests(const WeightDigests&) = delete;
  WeightDigests& operator=(const WeightDigests&) = delete;

  // Throws what the run of a snapshot does. FailedPreconditionError: a variable has no value yet.
  void take(Session& session);

  // Where a training goes on at a step that is due, its digest is written again: the one before may have been under way
  // when the process was killed.
  void take_if_due(Session& session, int64_t every);

  // Waits until all that was taken is written; false: it is not.
  bool finish();

 private:
  class Worker;

  const Seconds timeout_;
  std::vector<std::string> names_;
  std::vector<Fetch> fetches_;            // the variables and, last, the step
  const std::shared_ptr<Worker> worker_;  // its thread shares it
  NamedThread thread_;
};

}  // namespace longhaul

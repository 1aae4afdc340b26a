#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
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

// Writes digests of all global variables of a graph into event files. A call of take() holds them as they are at one
// moment between two steps, which copies nothing; a thread of this object reads the bytes. So the training waits only
// where it is asked for the next one but one before a digest is done.
//
// One thread calls; the destructor waits for the digests under way, of which there are two at most.
class WeightDigests {
 public:
  // `global_step` gives each digest its step.
  WeightDigests(const Graph& graph, Output global_step, std::shared_ptr<FileWriter> writer);
  ~WeightDigests();
  WeightDigests(const WeightDigests&) = delete;
  WeightDigests& operator=(const WeightDigests&) = delete;

  // Throws what the run of a snapshot does. FailedPreconditionError: a variable has no value yet.
  void take(Session& session);

  // Where a training goes on at a step that is due, its digest is written again: the one before may have been under way
  // when the process was killed.
  void take_if_due(Session& session, int64_t every);

  // Waits until all that was taken is written.
  void finish() EXCLUDES(mutex_);

 private:
  struct Taken {
    int64_t step = 0;
    std::vector<NamedTensor> tensors;
  };
  void work() EXCLUDES(mutex_);
  void write(Taken taken);

  const std::shared_ptr<FileWriter> writer_;
  std::vector<std::string> names_;
  std::vector<Fetch> fetches_;  // the variables and, last, the step

  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<Taken> waiting_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false, stop_ GUARDED_BY(mutex_) = false;
  NamedThread thread_;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A value of a snapshot, on the task that has its variable.
struct ValueOnTask {
  std::string task{};  // "/job:ps/replica:0/task:1"
  DType dtype = kInvalid;
  Shape shape{};
  uint64_t bytes = 0;  // that it takes in a data file, lengths of strings included
  // Of numbers: the value itself if it has at most kMostSampled elements, else so many of them, the first and the last
  // among them, as a vector. Of strings: no elements.
  Tensor sample{};
  static constexpr int64_t kMostSampled = 16;
};

// A data file of a checkpoint that a task is to write.
struct ShardToWrite {
  std::string task{};
  std::string path{};               // absolute, with a temporary name that nothing has yet
  std::vector<size_t> values{};     // of the snapshot, all on that task, in the order of the file
  double max_bytes_per_second = 0;  // 0: no limit
};
struct WrittenShard {
  uint64_t bytes = 0;
  std::vector<proto::BundleEntryProto> entries{};  // of each value, without the number of the data file
};

// Values of a snapshot that come from their tasks one after the other. One thread at a time may call.
class ValueStream {
 public:
  virtual ~ValueStream() = default;
  // The next elements, as a vector: of the first value in order, then of the next. Strings of a value come all at once;
  // empty values are left out. Throws what a run throws.
  virtual Tensor next() = 0;
};

// A snapshot whose values stay where they are until they have been written: each task holds its own, until this is
// destroyed or the process of its session dies. One thread at a time may call; each call throws what a run throws:
// AbortedError if the session is lost, UnavailableError if a task does not answer.
class TaskSnapshot {
 public:
  virtual ~TaskSnapshot() = default;

  virtual const std::vector<ValueOnTask>& values() const = 0;  // for each fetch
  virtual std::optional<int64_t> global_step() const = 0;
  // CRC-32C of each value as a data file has it, not masked. Each task reads all its values once.
  virtual std::vector<uint32_t> checksums() = 0;

  // Each task writes its file by itself, at its disk's speed, and syncs it. Returns when all have; the files keep the
  // names that they were given. After an error, tasks may go on until this is destroyed, and a little longer; each
  // removes what it has written. ResourceExhaustedError: "From TASK:", its disk is full. DeadlineExceededError: a task
  // needs longer than the slowest disk would.
  virtual std::vector<WrittenShard> write(const std::vector<ShardToWrite>& shards) = 0;

  // Brings the values here, in that order, with at most TaskSnapshots::most_in_flight() bytes on their way or waiting
  // (more, if the strings of one value have more). The snapshot must outlive the stream.
  virtual std::unique_ptr<ValueStream> read(std::vector<size_t> values) = 0;
};

// A file as a task sees it.
struct SeenFile {
  bool is_there = false;
  uint64_t bytes = 0;
  uint32_t crc = 0;             // CRC-32C, not masked
  std::string why{};            // it is not there, or cannot be read
  std::string why_read_only{};  // the task cannot make files next to it; empty if it can, or was not asked
  bool operator==(const SeenFile&) const = default;
};

enum class LookFor { kRead, kWrite };  // kWrite: whether the task could make files next to it, too

// Implemented by sessions whose variables live on several tasks (SessionCapabilities::task_snapshots): a saver need not
// bring their values to its own process. Any thread may call.
class TaskSnapshots {
 public:
  virtual ~TaskSnapshots() = default;

  // The tasks on which these tensors are computed, sorted; empty: all are computed on the session's own task, where a
  // snapshot of session/snapshots.h is as good.
  virtual std::vector<std::string> tasks_of(const std::vector<Fetch>& fetches) = 0;

  // Like Snapshots::take(). `global_step`: the index of the fetch that TaskSnapshot::global_step() is the value of.
  virtual std::unique_ptr<TaskSnapshot> take_there(const std::vector<Fetch>& fetches,
                                                   std::optional<size_t> global_step) = 0;

  // What each of these tasks sees under that path. Throws what a run throws. With kWrite, each task makes a file whose
  // name begins with that path, which must be a probe's (checkpoint/files), and removes it.
  virtual std::vector<SeenFile> look(const std::vector<std::string>& tasks, const std::string& path,
                                     LookFor purpose) = 0;

  // How much of the values may be in this process, or on the way to it, at a time.
  virtual uint64_t most_in_flight() const = 0;
};

// Of a value: ValueOnTask::sample.
Tensor sample_of(const Tensor& value);

}  // namespace longhaul

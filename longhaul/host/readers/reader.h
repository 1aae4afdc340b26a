#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/mutex.h"
#include "longhaul/host/readers/record_source.h"
#include "longhaul/host/resource.h"
#include "longhaul/proto/reader_state.pb.h"

namespace longhaul {

// Reads the records of one file after another. Any thread; calls that advance it take turns, and each record goes to
// one of them. Waiting for a turn ends with `limits`: CancelledError, DeadlineExceededError.
class Reader final : public Resource {
 public:
  struct Records {
    std::vector<std::string> keys, values;
  };
  static constexpr uint64_t kMostBytesAtOnce = kMostRecordBytes;
  enum class Keys { kWanted, kLeftOut };  // left out: Records::keys is empty
  // Returns the name of the next file, waiting for it. OutOfRangeError: there are no more.
  using NextFile = std::function<std::string()>;

  // `name` is for messages.
  Reader(std::string name, OpenRecords open) : name_(std::move(name)), open_(std::move(open)) {}

  // Up to `limit` records of one file, at least one; files without any are skipped. Fewer if the file ends, as in
  // TensorFlow, or once they reach kMostBytesAtOnce, which even a small compressed file can contain. An error after
  // some records is thrown by the next call. A file that cannot be opened is an error, and is skipped by the following
  // call.
  Records read(int64_t limit, const NextFile& next_file, FileSystem& files, const WaitLimits& limits = {},
               Keys keys = Keys::kWanted) EXCLUDES(mutex_);

  // Since it was created, reset or restored.
  int64_t num_records_produced() const EXCLUDES(mutex_);
  int64_t num_work_units_completed() const EXCLUDES(mutex_);

  // Converts its position to bytes (ReaderBaseState), and back. After a restore, the file is opened when read.
  // InvalidArgumentError "Could not parse state for NAME".
  std::string serialize_state(const WaitLimits& limits = {}) EXCLUDES(mutex_);
  void restore_state(const std::string& bytes, const WaitLimits& limits = {}) EXCLUDES(mutex_);
  // Back to the initial state.
  void reset(const WaitLimits& limits = {}) EXCLUDES(mutex_);

 private:
  // The current file. After a restore, `source` is null until reading continues.
  struct Work {
    std::string path;
    RecordPlace place;
    std::unique_ptr<RecordSource> source;
  };
  class Turn;

  bool read_one(const NextFile& next_file, FileSystem& files, Keys keys, Records& records);
  void open(FileSystem& files);
  void throw_left_over();
  void start_with(std::unique_ptr<Work> work);
  void finish_work() EXCLUDES(mutex_);

  const std::string name_;
  const OpenRecords open_;
  // For the call that has the turn.
  std::unique_ptr<Work> work_;    // null: between files
  std::exception_ptr left_over_;  // an error that came after some records

  mutable Mutex mutex_;
  CondVar turn_ended_;
  bool taken_ GUARDED_BY(mutex_) = false;  // a call has the turn
  int64_t produced_ GUARDED_BY(mutex_) = 0;
  int64_t completed_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/io/records/record.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul {

// Reads an event file, which may still be growing. One thread at a time.
class EventReader {
 public:
  // Opens the file, and throws what the file system throws (NotFoundError, ...). `offset`: where to begin, as offset()
  // of another reader of the file said.
  explicit EventReader(const std::string& path, FileSystem& files = FileSystem::real(), uint64_t offset = 0);

  // Returns the next event, or nullopt after the last complete one, even if a part of another event follows. May be
  // called again when the file has grown. DataLossError: the file is damaged at this point, and later events cannot be
  // found.
  std::optional<proto::Event> next();

  uint64_t offset() const { return records_.offset(); }  // in the file, of the next event

  // Whether an incomplete event followed when next() last returned nullopt.
  bool is_truncated() const { return is_truncated_; }

 private:
  const std::string path_;
  std::unique_ptr<ReadableFile> file_;
  RecordReader records_;
  bool is_truncated_ = false;
};

// The paths of the event files in a directory, in the order in which TensorBoard reads them, by name.
std::vector<std::string> event_files(const std::string& logdir, FileSystem& files = FileSystem::real());

}  // namespace longhaul

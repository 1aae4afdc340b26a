#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "longhaul/console/events/event_values.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul::console {

// Where an event stands.
struct EventPlace {
  const std::string& path;
  uint64_t offset = 0;  // in the file
};

// The event files of a run that a board follows for weeks: what is wrong with one is looked at again, since it may
// pass, and no more memory is taken than a board could show. No file stays open between two looks. One thread at a
// time.
class RunFiles {
 public:
  using UseEvent = std::function<bool(const proto::Event&, const EventPlace&)>;  // false: no further one

  RunFiles(FileSystem& files, std::string directory) : files_(files), directory_(std::move(directory)) {}

  enum class End {
    kRead,
    kStopped,   // by use(): the next call continues behind that event
    kReplaced,  // what was read of a file stands there no more: all is to be read anew, by another RunFiles
  };
  // Calls use() with what was written since the last call, in new files too, in the order of their names. A file that
  // cannot be read becomes a problem until it can. Errors of the directory.
  End read(const UseEvent& use);

  // Of the files that were there last, a few.
  std::vector<std::string> problems() const;

 private:
  struct File {
    uint64_t offset = 0;        // of the next event
    std::string end_of_read{};  // the last bytes before it
    double modified_at = -1;    // before it was read last
    bool is_quiet = false;      // it was looked at to its end twice since then, so that nothing can have been missed
    uint64_t skipped = 0;       // records that are no events
    std::string problem{};
  };

  End read_file(const std::string& path, const UseEvent& use);
  End read_on(const std::string& path, File& file, const UseEvent& use);
  static bool read_records(const ReadableFile& opened, const std::string& path, File& file, const UseEvent& use);

  FileSystem& files_;
  const std::string directory_;
  std::map<std::string, File> known_;
  std::vector<std::string> there_;  // the paths of those that were there last
  size_t left_out_ = 0;             // of them
};

// The event there. NotFoundError: the file, or what was in it, is gone. DataLossError: it is damaged.
proto::Event event_in(FileSystem& files, const EventPlace& place);

}  // namespace longhaul::console

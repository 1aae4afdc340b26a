#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"
#include "longhaul/io/file.h"

namespace longhaul {

// One event file, written from its first record on. docs/formats/event_file.md. One thread at a time.
//
// A process that crashes leaves the file with all that append() returned from, a machine that crashes what close() did.
class EventWriter {
 public:
  // Creates "events.out.tfevents.<seconds>.<host><suffix>" in the directory and writes the version record. The seconds
  // are the time now, or more where needed, so that the file sorts after every event file that is there: readers take a
  // directory's files in the order of their names and never turn back.
  EventWriter(FileSystem& files, Clock& clock, const std::string& directory, const std::string& suffix);

  const std::string& path() const { return path_; }

  // Hands the records to the kernel. NotFoundError: somebody deleted the file, and what it held is lost.
  void append(std::string_view records);

  // Syncs file and directory to the disk, and closes.
  void close();

  // Gives the file up after an error: closes it, and removes it if nothing was appended, so that a disk that stays full
  // does not fill with files. Throws nothing.
  void abandon();

 private:
  void create(Clock& clock, const std::string& directory, const std::string& suffix);
  void write(std::string_view records);

  FileSystem& files_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  bool is_empty_ = true;
};

}  // namespace longhaul

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Writes one event file (docs/formats/event_file.md). One thread at a time may call.
//
// Everything passed to append() survives a crash of the process once append() has returned, and a crash of the machine
// once close() has returned.
class EventWriter {
 public:
  // Creates "events.out.tfevents.<seconds>.<host><suffix>" in the directory and writes the version record. The seconds
  // are the current time, or a later one if the file would otherwise sort before an existing event file, because
  // readers read the files of a directory in the order of their names and never go back.
  EventWriter(FileSystem& files, Clock& clock, const std::string& directory, const std::string& suffix);

  const std::string& path() const { return path_; }

  // Hands the records to the kernel. NotFoundError: the file was deleted, and its contents are lost.
  void append(std::string_view records);

  // Syncs the file and the directory to the disk, and closes the file.
  void close();

  // Abandons the file after an error: closes it, and removes it if nothing was appended, so that files do not pile up
  // on a full disk. Does not throw.
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

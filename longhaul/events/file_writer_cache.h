#pragma once

#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// Event file writers, one for each directory, shared by all code that was not given a writer. (If two event files grow
// in one directory, TensorBoard shows only the later one.)
//
// A writer is closed when its last holder releases it. Any thread may call.
class FileWriterCache {
 public:
  // Returns the writer of the directory, whatever path leads there, even through symbolic links. Makes a new one, with
  // `options`, if nobody holds a writer or if it was closed.
  static std::shared_ptr<FileWriter> get(const std::string& logdir, const FileWriterOptions& options = {});

  // Returns the directory's writer if somebody holds it and it is open, else nullptr.
  static std::shared_ptr<FileWriter> find(const std::string& logdir);

  // Forgets all writers; the next get() creates new ones.
  static void clear();
};

}  // namespace longhaul

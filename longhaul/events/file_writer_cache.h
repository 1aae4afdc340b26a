#pragma once

#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// The writers that are shared by all who write to one directory and were given no writer of their own. (Of two event
// files that grow in one directory TensorBoard shows only the later one.)
//
// A writer lives as long as somebody holds it, and is closed with the last of them. Any thread.
class FileWriterCache {
 public:
  // The writer of the directory, however it is spelled, also by symbolic links; a new one, with `options`, if nobody
  // holds one or it was closed.
  static std::shared_ptr<FileWriter> get(const std::string& logdir, const FileWriterOptions& options = {});

  // Forgets all writers: the next get() makes new ones.
  static void clear();
};

}  // namespace longhaul

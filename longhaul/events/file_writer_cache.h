#pragma once

#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// Writers shared by all code that writes to one directory without a writer of its own. (Of two event files that grow in
// one directory, TensorBoard shows only the later one.)
//
// A writer lives as long as someone holds it, and is closed when the last holder releases it. Any thread.
class FileWriterCache {
 public:
  // The writer of the directory, however it is spelled, also through symbolic links; a new one, with `options`, if none
  // is held or it was closed.
  static std::shared_ptr<FileWriter> get(const std::string& logdir, const FileWriterOptions& options = {});

  // The open writer of the directory that somebody holds; nullptr: none.
  static std::shared_ptr<FileWriter> find(const std::string& logdir);

  // Forgets all writers; the next get() creates new ones.
  static void clear();
};

}  // namespace longhaul

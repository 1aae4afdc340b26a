#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/io/files/bucket_files.h"
#include "longhaul/io/files/rate_limit.h"

namespace longhaul {

// The files of another file system, whose bytes are read in pieces of some megabytes, at a steady rate: for a long
// reading that may have to end early. Everything but reading is passed on. One thread at a time may read.
class PacedFiles : public BucketFiles {
 public:
  // `before_piece` is called before each piece is read; an exception from it ends the reading. `max_bytes_per_second`
  // and `pause` are RateLimit's. `inner` and the clock must outlive this object, which must outlive every file that it
  // has made.
  PacedFiles(FileSystem& inner, double max_bytes_per_second, std::function<void()> before_piece, Clock& clock,
             Pause pause = {});

  std::unique_ptr<ReadableFile> open(const std::string& path) override;

 private:
  class File;

  void take(size_t bytes);

  RateLimit rate_;
  const std::function<void()> before_piece_;
};

}  // namespace longhaul

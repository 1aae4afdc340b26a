#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/file.h"
#include "longhaul/io/inflate.h"

namespace longhaul {

// A file that holds what is appended as one zlib stream (RFC 1950) or gzip member (RFC 1952). With a RecordWriter over
// it, it is a TFRecord file as TensorFlow's writer makes with that compression_type:
//   DeflatedFile file(FileSystem::real().create("a.tfrecord.gz"), InflateStream::Format::kGzip);
//   RecordWriter records(file);
//
// What was appended can be read back after flush(), and is a whole stream after close(). A flush costs some bytes, so
// that many make the file larger. Memory: two buffers of fixed size. After an error, and after close(), nothing more
// goes into the file (FailedPreconditionError); to close it once more is fine. The destructor closes and reports
// nothing. One thread at a time.
class DeflatedFile : public WritableFile {
 public:
  // `level`: 0 (stored) to 9 (smallest), -1: zlib's choice. InvalidArgumentError: another one.
  DeflatedFile(std::unique_ptr<WritableFile> file, InflateStream::Format format, int level = -1);
  ~DeflatedFile() override;
  DeflatedFile(const DeflatedFile&) = delete;
  DeflatedFile& operator=(const DeflatedFile&) = delete;

  void append(std::string_view data) override;
  void flush() override;
  void sync() override;
  void close() override;

 private:
  struct State;

  void deflate_all(std::string_view data, int how);

  const std::unique_ptr<WritableFile> file_;
  const std::unique_ptr<State> state_;
  bool is_usable_ = true;
  bool is_closed_ = false;
};

}  // namespace longhaul

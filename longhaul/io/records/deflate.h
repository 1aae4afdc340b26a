#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"
#include "longhaul/io/records/inflate.h"

namespace longhaul {

// A file that compresses appended bytes into one zlib stream (RFC 1950) or gzip member (RFC 1952). With a RecordWriter
// on top of it, the result is the TFRecord file that TensorFlow's writer makes with that compression_type:
//   DeflatedFile file(FileSystem::real().create("a.tfrecord.gz"), InflateStream::Format::kGzip);
//   RecordWriter records(file);
//
// Appended data can be read back after flush(), and is a complete stream after close(). Each flush adds some bytes, so
// frequent flushes make the file larger. Uses two buffers of fixed size. After an error, and after close(), nothing
// more can be written (FailedPreconditionError), but close() may be called again. The destructor closes the file and
// reports nothing. One thread at a time may call.
class DeflatedFile : public WritableFile {
 public:
  // `level`: 0 (stored) to 9 (smallest), -1: zlib's choice. InvalidArgumentError: any other number.
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

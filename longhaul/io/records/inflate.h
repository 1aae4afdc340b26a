#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Decompresses a file from front to back: a zlib stream (RFC 1950), or consecutive gzip members (RFC 1952). Borrows the
// file. Uses two buffers of fixed size, whatever sizes the file claims. One thread at a time may call.
class InflateStream {
 public:
  enum class Format { kZlib, kGzip };
  // `name` is for messages.
  InflateStream(const ReadableFile& file, std::string name, Format format);
  ~InflateStream();
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  // Reads `count` bytes into `out`; fewer only at the end. DataLossError: the file is damaged, or ends within the
  // stream; the next call throws it again.
  size_t read(char* out, size_t count);

 private:
  struct State;

  bool fill_input();
  void restart();
  [[noreturn]] void fail(const std::string& what);

  const ReadableFile& file_;
  const std::string name_;
  const Format format_;
  const std::unique_ptr<State> state_;
  std::string input_;
  uint64_t offset_ = 0;  // of the next read into input_
  bool begun_ = false;   // a stream, or member, has begun and not ended
  std::string failure_;
};

}  // namespace longhaul

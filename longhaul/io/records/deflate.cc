#include "longhaul/io/records/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr size_t kOutputBytes = 64 * 1024;
constexpr int kGzipAround = 16;  // zlib's flag in the window bits
constexpr int kMemoryLevel = 8;  // zlib's default

}  // namespace

struct DeflatedFile::State {
  z_stream zlib{};
  std::string output = std::string(kOutputBytes, '\0');
};

DeflatedFile::DeflatedFile(std::unique_ptr<WritableFile> file, InflateStream::Format format, int level)
    : file_(std::move(file)), state_(std::make_unique<State>()) {
  if (level < -1 || level > 9)
    throw InvalidArgumentError("the compression level must be -1 to 9, not " + std::to_string(level));
  const int window_bits = MAX_WBITS + (format == InflateStream::Format::kGzip ? kGzipAround : 0);
  if (deflateInit2(&state_->zlib, level, Z_DEFLATED, window_bits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    throw ResourceExhaustedError("out of memory for compression");
}

DeflatedFile::~DeflatedFile() {
  try {
    if (is_usable_) close();
  } catch (...) {  // a file of the program's own may throw anything
  }
  deflateEnd(&state_->zlib);
}

void DeflatedFile::append(std::string_view data) {
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  for (; data.size() > kMost; data.remove_prefix(kMost)) deflate_all(data.substr(0, kMost), Z_NO_FLUSH);
  deflate_all(data, Z_NO_FLUSH);
}

// What zlib has made of it so far goes to the file; `how` says what it is to keep back.
void DeflatedFile::deflate_all(std::string_view data, int how) {
  if (!std::exchange(is_usable_, false))
    throw FailedPreconditionError("write to a compressed file after close() or after a failed write");
  z_stream& zlib = state_->zlib;
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  zlib.avail_in = static_cast<uInt>(data.size());
  std::string& output = state_->output;
  do {
    zlib.next_out = reinterpret_cast<Bytef*>(output.data());
    zlib.avail_out = static_cast<uInt>(output.size());
    deflate(&zlib, how);
    file_->append(std::string_view(output).substr(0, output.size() - zlib.avail_out));
  } while (zlib.avail_out == 0);
  is_usable_ = true;
}

void DeflatedFile::flush() {
  deflate_all({}, Z_SYNC_FLUSH);
  is_usable_ = false;
  file_->flush();
  is_usable_ = true;
}

void DeflatedFile::sync() {
  flush();
  is_usable_ = false;
  file_->sync();
  is_usable_ = true;
}

void DeflatedFile::close() {
  if (is_closed_) return;
  deflate_all({}, Z_FINISH);
  is_usable_ = false;
  file_->close();
  is_closed_ = true;
}

}  // namespace longhaul

#include "longhaul/io/records/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace longhaul {
namespace {

constexpr size_t kInputBytes = 64 * 1024;
constexpr int kGzipAlone = 16;  // zlib's flag in the window bits

}  // namespace

struct InflateStream::State {
  z_stream zlib{};
};

InflateStream::InflateStream(const ReadableFile& file, std::string name, Format format)
    : file_(file), name_(std::move(name)), format_(format), state_(std::make_unique<State>()) {
  const int window_bits = MAX_WBITS + (format_ == Format::kGzip ? kGzipAlone : 0);
  if (inflateInit2(&state_->zlib, window_bits) != Z_OK)
    throw ResourceExhaustedError(name_ + ": out of memory for decompression");
}

InflateStream::~InflateStream() {
  inflateEnd(&state_->zlib);
}

size_t InflateStream::read(char* out, size_t count) {
  if (!failure_.empty()) throw DataLossError(failure_);
  z_stream& zlib = state_->zlib;
  zlib.next_out = reinterpret_cast<Bytef*>(out);
  size_t got = 0;
  while (got < count) {
    if (zlib.avail_in == 0 && !fill_input()) {
      if (begun_) fail("its compressed stream is truncated");
      break;
    }
    if (!begun_) restart();
    const auto room = static_cast<uInt>(std::min<size_t>(count - got, std::numeric_limits<uInt>::max()));
    zlib.avail_out = room;
    const int result = inflate(&zlib, Z_NO_FLUSH);
    got += room - zlib.avail_out;
    if (result == Z_STREAM_END) {
      begun_ = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(fmt::format("its compressed stream is damaged before byte {}: {}", offset_ - zlib.avail_in,
                       zlib.msg == nullptr ? "zlib rejects it" : zlib.msg));
    }
  }
  return got;
}

bool InflateStream::fill_input() {
  input_.resize(kInputBytes);
  input_.resize(file_.read(offset_, input_.data(), input_.size()));
  offset_ += input_.size();
  state_->zlib.next_in = reinterpret_cast<Bytef*>(input_.data());
  state_->zlib.avail_in = static_cast<uInt>(input_.size());
  return !input_.empty();
}

// Behind a gzip member another may follow; behind a zlib stream nothing may.
void InflateStream::restart() {
  if (state_->zlib.total_in > 0 && format_ == Format::kZlib) fail("it has data after its compressed stream");
  inflateReset(&state_->zlib);
  begun_ = true;
}

void InflateStream::fail(const std::string& what) {
  failure_ = name_ + ": " + what;
  throw DataLossError(failure_);
}

}  // namespace longhaul

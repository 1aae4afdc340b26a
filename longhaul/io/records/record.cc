#include "longhaul/io/records/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "longhaul/io/records/crc32c.h"

namespace longhaul {

static_assert(std::endian::native == std::endian::little, "lengths and checksums are copied as they lie in memory");

namespace {

constexpr size_t kReadBytes = 256 * 1024;

uint32_t masked_crc(std::string_view data) {
  return mask_crc32c(crc32c(data));
}

template <typename Number>
Number load(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

template <typename Number>
void store(char* to, Number number) {
  std::memcpy(to, &number, sizeof(number));
}

}  // namespace

void frame_record(char* record, size_t payload_bytes) {
  char* payload = record + kRecordHeaderBytes;
  store(record, uint64_t{payload_bytes});
  store(record + 8, masked_crc({record, 8}));
  store(payload + payload_bytes, masked_crc({payload, payload_bytes}));
}

void append_record(std::string& out, std::string_view payload) {
  size_t begin = out.size();
  out.append(kRecordHeaderBytes, '\0').append(payload).append(kRecordFooterBytes, '\0');
  frame_record(out.data() + begin, payload.size());
}

void RecordWriter::write(std::string_view payload) {
  record_.clear();
  append_record(record_, payload);
  file_.append(record_);
}

RecordReader::RecordReader(const ReadableFile& file, std::string name, uint64_t offset, uint64_t most_bytes)
    : file_(file), name_(std::move(name)), most_bytes_(most_bytes), offset_(offset) {}

RecordReader::Result RecordReader::next(std::string_view& payload) {
  std::string_view header = window(offset_, kRecordHeaderBytes);
  if (header.empty()) return Result::kEnd;
  if (header.size() < kRecordHeaderBytes) return Result::kTruncated;
  uint32_t header_crc = masked_crc(header.substr(0, 8));
  if (header_crc != load<uint32_t>(header, 8)) throw_corrupted("length", load<uint32_t>(header, 8), header_crc);

  uint64_t length = load<uint64_t>(header, 0);
  // What is not in the buffer is looked for in the file before memory is taken for it.
  uint64_t rest = buffer_offset_ + filled_ - offset_ - kRecordHeaderBytes;
  const auto is_there = [&] { return rest >= kRecordFooterBytes && length <= rest - kRecordFooterBytes; };
  if (!is_there()) {
    rest = file_.size() - offset_ - kRecordHeaderBytes;
    if (!is_there()) return Result::kTruncated;
  }
  if (length > most_bytes_) {
    throw DataLossError(
        fmt::format("{}: the record at {} has {} bytes, {} are the limit", name_, offset_, length, most_bytes_));
  }

  std::string_view body = window(offset_ + kRecordHeaderBytes, length + kRecordFooterBytes);
  if (body.size() < length + kRecordFooterBytes) return Result::kTruncated;
  uint32_t crc = masked_crc(body.substr(0, length));
  if (crc != load<uint32_t>(body, length)) throw_corrupted("data", load<uint32_t>(body, length), crc);
  payload = body.substr(0, length);
  offset_ += kRecordHeaderBytes + length + kRecordFooterBytes;
  return Result::kRecord;
}

// The `count` bytes at `offset`, fewer only at the end of the file. Valid until the next call.
std::string_view RecordReader::window(uint64_t offset, size_t count) {
  bool inside = offset >= buffer_offset_ && offset + count <= buffer_offset_ + filled_;
  if (!inside) {
    filled_ = 0;  // until the read has succeeded
    buffer_.resize(std::max(count, kReadBytes));
    buffer_offset_ = offset;
    filled_ = file_.read(offset, buffer_.data(), buffer_.size());
  }
  return std::string_view(buffer_).substr(0, filled_).substr(offset - buffer_offset_, count);
}

void RecordReader::throw_corrupted(const char* part, uint32_t got, uint32_t want) const {
  throw DataLossError(
      fmt::format("{}: corrupted record at {}: {} crc {:#010x}, want {:#010x}", name_, offset_, part, got, want));
}

}  // namespace longhaul

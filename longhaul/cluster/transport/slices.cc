#include "longhaul/cluster/transport/slices.h"

#include <algorithm>
#include <cstring>

#include "longhaul/base/varint.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

// Below, a copy costs less than a piece of its own; TensorFlow's figure.
constexpr size_t kShortBytes = 1024;

}  // namespace

size_t total_bytes(const Slices& slices) {
  size_t total = 0;
  for (const Slice& slice : slices) total += slice.bytes.size();
  return total;
}

std::string joined(const Slices& slices) {
  std::string bytes;
  bytes.reserve(total_bytes(slices));
  for (const Slice& slice : slices) bytes.append(slice.bytes);
  return bytes;
}

void SliceWriter::borrow(std::string_view bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() <= kShortBytes) return copy(bytes);
  end_collected();
  slices_.push_back({bytes, std::move(owner)});
}

void SliceWriter::varint(uint64_t value) {
  append_varint(collected_, value);
}

void SliceWriter::counted(uint32_t field, std::string_view bytes) {
  tag(field, WireReader::kBytes);
  varint(bytes.size());
  copy(bytes);
}

void SliceWriter::checksum(uint32_t field) {
  uint32_t sum = 0;
  for (const Slice& slice : slices_) sum = extend_crc32c(sum, slice.bytes);
  sum = extend_crc32c(sum, collected_);
  tag(field, WireReader::kFixed32);
  char bytes[sizeof(sum)];
  std::memcpy(bytes, &sum, sizeof(sum));
  copy({bytes, sizeof(bytes)});
}

Slices SliceWriter::take() {
  end_collected();
  return std::move(slices_);
}

void SliceWriter::end_collected() {
  if (collected_.empty()) return;
  const auto owner = std::make_shared<const std::string>(std::move(collected_));
  slices_.push_back({*owner, owner});
  collected_.clear();
}

bool SliceReader::take_byte(unsigned char& byte) {
  return take(&byte, 1);
}

bool SliceReader::take_varint(uint64_t& value) {
  constexpr int kMostBits = 64;
  value = 0;
  for (int shift = 0; shift < kMostBits; shift += 7) {
    unsigned char byte;
    if (!take_byte(byte) || (shift == 63 && byte > 1)) return false;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool SliceReader::take_tag(uint32_t& field, uint32_t& type) {
  uint64_t tag;
  if (!take_varint(tag) || tag > UINT32_MAX || tag < 8) return false;
  field = static_cast<uint32_t>(tag >> 3);
  type = static_cast<uint32_t>(tag & 7);
  return true;
}

bool SliceReader::take_length(size_t& length) {
  uint64_t value;
  if (!take_varint(value) || value > left_) return false;
  length = value;
  return true;
}

bool SliceReader::take(void* out, size_t count) {
  if (count > left_) return false;
  left_ -= count;
  for (char* to = static_cast<char*>(out); count > 0;) {
    const std::string_view rest = slices_[slice_].bytes.substr(offset_);
    const size_t now = std::min(count, rest.size());
    if (to != nullptr) std::memcpy(to, rest.data(), now);
    if (to != nullptr) to += now;
    count -= now;
    offset_ += now;
    if (now < rest.size()) break;
    sum_slice();
    ++slice_;
    offset_ = summed_ = 0;
  }
  return true;
}

void SliceReader::sum_slice() {
  if (!has_checksum_) return;
  checksum_ = extend_crc32c(checksum_, slices_[slice_].bytes.substr(summed_, offset_ - summed_));
  summed_ = offset_;
}

uint32_t SliceReader::checksum() {
  if (offset_ > summed_) sum_slice();
  return checksum_;
}

bool SliceReader::take(std::string& out, size_t count) {
  if (count > left_) return false;
  out.resize(count);
  return take(out.data(), count);
}

bool SliceReader::skip(size_t count) {
  return take(nullptr, count);
}

bool SliceReader::skip_field(uint32_t type) {
  uint64_t number;
  size_t length;
  switch (type) {
    case WireReader::kVarint: return take_varint(number);
    case WireReader::kFixed64: return skip(sizeof(uint64_t));
    case WireReader::kBytes: return take_length(length) && skip(length);
    case WireReader::kFixed32: return skip(sizeof(uint32_t));
    default: return false;  // groups, which no message here has
  }
}

}  // namespace longhaul

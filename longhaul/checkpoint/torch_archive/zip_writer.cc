#include "longhaul/checkpoint/torch_archive/zip_writer.h"

#include <algorithm>
#include <utility>

#include "longhaul/checkpoint/torch_archive/zip_format.h"
#include "longhaul/io/records/crc32.h"

namespace longhaul {
namespace {

// A value of 64 bits in a field of 32.
uint64_t in_32(uint64_t value) {
  return std::min<uint64_t>(value, zip::kIn64);
}

// The extra field with those of the values that do not fit in their fields; empty if all do.
std::string extra64(std::initializer_list<uint64_t> values) {
  std::string large;
  for (const uint64_t value : values) {
    if (value >= zip::kIn64) zip::put64(large, value);
  }
  std::string extra;
  if (large.empty()) return extra;
  zip::put16(extra, zip::kExtra64);
  zip::put16(extra, large.size());
  return extra + large;
}

// The fields that a local header and a directory entry have in common.
void put_common(std::string& out, uint32_t crc, uint64_t size, const std::string& name, const std::string& extra) {
  zip::put16(out, zip::kVersion);
  zip::put16(out, zip::kUtf8);
  zip::put16(out, zip::kStored);
  zip::put16(out, 0);  // time
  zip::put16(out, zip::kFirstDate);
  zip::put32(out, crc);
  zip::put32(out, in_32(size));
  zip::put32(out, in_32(size));
  zip::put16(out, name.size());
  zip::put16(out, extra.size());
}

}  // namespace

void ZipWriter::append(std::string_view bytes) {
  file_.append(bytes);
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view bytes, std::shared_ptr<const void> owner) {
  const Entry entry{name, bytes.size(), offset_, crc32(bytes)};
  std::string extra = extra64({entry.size, entry.size});
  const uint64_t unpadded = offset_ + zip::kLocalHeaderBytes + name.size() + extra.size() + zip::kExtraHeaderBytes;
  const size_t padding = static_cast<size_t>((zip::kAlignment - unpadded % zip::kAlignment) % zip::kAlignment);
  zip::put16(extra, zip::kPadding);
  zip::put16(extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  zip::put32(header, zip::kLocalHeader);
  put_common(header, entry.crc, entry.size, name, extra);
  append(header + name + extra);
  if (owner == nullptr) {
    append(bytes);
  } else {
    file_.append_borrowed(bytes, std::move(owner));
    offset_ += bytes.size();
  }
  entries_.push_back(entry);
}

void ZipWriter::finish() {
  const uint64_t begin = offset_;
  for (const Entry& entry : entries_) {
    const std::string extra = extra64({entry.size, entry.size, entry.header});
    std::string out;
    zip::put32(out, zip::kDirectoryEntry);
    zip::put16(out, zip::kVersion);  // of the writer
    put_common(out, entry.crc, entry.size, entry.name, extra);
    zip::put16(out, 0);  // comment
    zip::put16(out, 0);  // disk
    zip::put16(out, 0);  // attributes
    zip::put32(out, 0);
    zip::put32(out, in_32(entry.header));
    append(out + entry.name + extra);
  }
  const uint64_t end = offset_, size = end - begin, count = entries_.size();
  std::string out;
  zip::put32(out, zip::kEnd64);
  zip::put64(out, zip::kEnd64Bytes - 12);  // the size of what follows
  zip::put16(out, zip::kVersion);
  zip::put16(out, zip::kVersion);
  zip::put32(out, 0);  // disk
  zip::put32(out, 0);
  zip::put64(out, count);
  zip::put64(out, count);
  zip::put64(out, size);
  zip::put64(out, begin);
  zip::put32(out, zip::kEnd64Locator);
  zip::put32(out, 0);
  zip::put64(out, end);
  zip::put32(out, 1);  // disks
  zip::put32(out, zip::kEnd);
  zip::put16(out, 0);
  zip::put16(out, 0);
  zip::put16(out, std::min<uint64_t>(count, 0xffff));
  zip::put16(out, std::min<uint64_t>(count, 0xffff));
  zip::put32(out, in_32(size));
  zip::put32(out, in_32(begin));
  zip::put16(out, 0);  // comment
  append(out);
}

}  // namespace longhaul

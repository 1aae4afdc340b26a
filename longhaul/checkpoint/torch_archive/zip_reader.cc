#include "longhaul/checkpoint/torch_archive/zip_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/checkpoint/torch_archive/zip_format.h"
#include "longhaul/io/records/crc32.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostComment = 0xffff;

// The values that an entry's fields of 32 bits leave to its extra field, in the order in which they are there.
bool take_from_extra(std::string_view extra, std::initializer_list<uint64_t*> values) {
  for (zip::Fields fields(extra); fields.left() >= zip::kExtraHeaderBytes;) {
    const uint16_t number = fields.u16(), length = fields.u16();
    zip::Fields field(fields.bytes(length));
    if (number != zip::kExtra64) continue;
    for (uint64_t* value : values) {
      if (*value != zip::kIn64) continue;
      if (field.left() < 8) return false;
      *value = field.u64();
    }
    return true;
  }
  return std::none_of(values.begin(), values.end(), [](const uint64_t* value) { return *value == zip::kIn64; });
}

}  // namespace

ZipReader::ZipReader(const ReadableFile& file, std::string path)
    : file_(file), path_(std::move(path)), size_(file.size()) {
  const Directory directory = find_directory();
  data_end_ = directory.begin;
  read_directory(directory);
}

void ZipReader::fail(const std::string& what) const {
  throw DataLossError(fmt::format("{}: {}", path_, what));
}

// The caller has checked that the count is one that memory may be taken for.
std::string ZipReader::read_bytes(uint64_t offset, uint64_t count, const char* what) const {
  if (offset > size_ || count > size_ - offset) {
    fail(fmt::format("{} at byte {} has {} bytes, but the file has only {}", what, offset, count, size_));
  }
  std::string bytes(static_cast<size_t>(count), '\0');
  if (file_.read(offset, bytes.data(), bytes.size()) != bytes.size()) fail("the file was truncated while it was read");
  return bytes;
}

// The directory is found from the end of the file, where a record says its place; a comment may follow that record.
ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t count = std::min<uint64_t>(size_, zip::kEndBytes + kMostComment);
  const uint64_t begin = size_ - count;
  const std::string tail = read_bytes(begin, count, "the end");
  for (size_t place = tail.size() - std::min(tail.size(), zip::kEndBytes) + 1; place-- > 0;) {
    if (tail.size() - place < zip::kEndBytes) continue;
    zip::Fields fields(std::string_view(tail).substr(place));
    if (fields.u32() != zip::kEnd) continue;
    fields.bytes(6);
    Directory directory{.entries = fields.u16()};
    directory.size = fields.u32();
    directory.begin = fields.u32();
    if (fields.u16() != fields.left()) continue;
    const uint64_t end = begin + place;
    if (end >= zip::kEnd64LocatorBytes) {
      const uint64_t locator = end - zip::kEnd64LocatorBytes;
      const std::string signature = read_bytes(locator, 4, "the end");
      if (zip::Fields(signature).u32() == zip::kEnd64Locator) directory = directory64(locator);
    }
    if (directory.begin > end || directory.size > end - directory.begin) {
      fail(fmt::format("the directory of {} bytes at byte {} reaches beyond its end record at byte {}", directory.size,
                       directory.begin, end));
    }
    return directory;
  }
  fail("it has no zip directory at its end: it is truncated, or it is not an archive of PyTorch");
}

ZipReader::Directory ZipReader::directory64(uint64_t locator) const {
  const std::string place = read_bytes(locator, zip::kEnd64LocatorBytes, "the locator of the end record");
  zip::Fields fields(place);
  fields.bytes(8);
  const uint64_t end = fields.u64();
  const std::string record = read_bytes(end, zip::kEnd64Bytes, "the end record of 64 bits");
  zip::Fields values(record);
  if (values.u32() != zip::kEnd64) fail(fmt::format("there is no end record of 64 bits at byte {}", end));
  values.bytes(20);
  Directory directory;
  values.u64();  // the entries on this disk
  directory.entries = values.u64();
  directory.size = values.u64();
  directory.begin = values.u64();
  return directory;
}

void ZipReader::read_directory(const Directory& directory) {
  if (directory.size > kMaxZipDirectory) {
    fail(fmt::format("its directory has {} bytes; {} is the limit", directory.size, kMaxZipDirectory));
  }
  const std::string bytes = read_bytes(directory.begin, directory.size, "the directory");
  zip::Fields fields(bytes);
  while (fields.left() > 0) {
    const uint64_t place = directory.begin + bytes.size() - fields.left();
    if (fields.left() < zip::kDirectoryEntryBytes || fields.u32() != zip::kDirectoryEntry) {
      fail(fmt::format("there is no directory entry at byte {}", place));
    }
    fields.bytes(4);
    const uint16_t flags = fields.u16(), method = fields.u16();
    fields.bytes(4);
    ZipEntry entry{.crc = fields.u32()};
    uint64_t stored = fields.u32();
    entry.size = fields.u32();
    const size_t name = fields.u16(), extra = fields.u16(), comment = fields.u16();
    fields.bytes(8);
    entry.header = fields.u32();
    if (fields.left() < name + extra + comment) fail(fmt::format("the directory entry at byte {} is cut off", place));
    entry.name = fields.bytes(name);
    const std::string_view extras = fields.bytes(extra);
    fields.bytes(comment);
    if (!take_from_extra(extras, {&entry.size, &stored, &entry.header})) {
      fail(fmt::format("the directory entry at byte {} lacks its sizes of 64 bits", place));
    }
    entry.is_plain = method == zip::kStored && (flags & zip::kEncrypted) == 0;
    if (entry.header > data_end_ || stored > data_end_ - entry.header || (entry.is_plain && stored != entry.size)) {
      fail(
          fmt::format("{} of {} bytes at byte {} does not fit in the file", excerpt(entry.name), stored, entry.header));
    }
    if (!places_.emplace(entry.name, entries_.size()).second) fail(excerpt(entry.name) + " is there twice");
    entries_.push_back(std::move(entry));
  }
  if (entries_.size() != directory.entries) {
    fail(fmt::format("the directory has {} entries, but its end record says {}", entries_.size(), directory.entries));
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &entries_[place->second];
}

// The local header has its own name and extra field, whose lengths need not be those in the directory.
uint64_t ZipReader::data_begin(const ZipEntry& entry) const {
  const std::string header = read_bytes(entry.header, zip::kLocalHeaderBytes, "a local header");
  zip::Fields fields(header);
  if (fields.u32() != zip::kLocalHeader) {
    fail(fmt::format("{} has no local header at byte {}", excerpt(entry.name), entry.header));
  }
  fields.bytes(22);
  const uint64_t name = fields.u16(), extra = fields.u16();
  const uint64_t begin = entry.header + zip::kLocalHeaderBytes + name + extra;
  if (begin > data_end_ || entry.size > data_end_ - begin) {
    fail(fmt::format("{} of {} bytes at byte {} reaches into the directory", excerpt(entry.name), entry.size, begin));
  }
  return begin;
}

void ZipReader::read(const ZipEntry& entry, char* out) const {
  if (!entry.is_plain) {
    throw UnimplementedError(
        fmt::format("{}: {} is compressed or encrypted, which PyTorch does not do: the archive was zipped again; save "
                    "it again with torch.save",
                    path_, excerpt(entry.name)));
  }
  const auto size = static_cast<size_t>(entry.size);
  const ReadRequest request{data_begin(entry), out, size};
  size_t missing = size;
  file_.read_batch({&request, 1}, [&](const ReadPart& part) {
    if (part.error) std::rethrow_exception(part.error);
    missing -= part.bytes.size();
  });
  if (missing != 0) fail("the file was truncated while it was read");
  const uint32_t crc = crc32({out, size});
  if (crc == entry.crc) return;
  fail(
      fmt::format("{}: crc 0x{:08x}, want 0x{:08x}: it is damaged, or was written after "
                  "torch.serialization.set_crc32_options(False)",
                  excerpt(entry.name), crc, entry.crc));
}

std::string ZipReader::read_text(const ZipEntry& entry, uint64_t most) const {
  if (entry.is_plain && entry.size > most) {
    fail(fmt::format("{} has {} bytes; {} is the limit", excerpt(entry.name), entry.size, most));
  }
  std::string text(entry.is_plain ? static_cast<size_t>(entry.size) : 0, '\0');
  read(entry, text.data());
  return text;
}

}  // namespace longhaul

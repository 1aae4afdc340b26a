#include "tests/fuzz/repair.h"

#include <cstring>

#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/table/table.h"
#include "longhaul/checkpoint/table/table_format.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/io/records/record.h"

namespace longhaul::fuzz {
namespace {

using namespace table_format;

void store_crc(std::string& file, size_t from, size_t size) {
  const uint32_t crc = mask_crc32c(crc32c(std::string_view(file).substr(from, size)));
  std::memcpy(file.data() + from + size, &crc, sizeof crc);
}

struct Handle {
  uint64_t offset = 0, size = 0;
};

bool take_handle(std::string_view& text, Handle& handle) {
  return take_varint(text, handle.offset) && take_varint(text, handle.size);
}

bool repair_block(std::string& file, const Handle& handle) {
  if (handle.size > file.size() || handle.offset > file.size()) return false;
  if (handle.offset + handle.size + kTrailerSize > file.size()) return false;
  store_crc(file, handle.offset, handle.size + 1);
  return true;
}

}  // namespace

void repair_records(std::string& file) {
  for (size_t at = 0; at + kRecordHeaderBytes + kRecordFooterBytes <= file.size();) {
    const auto length = wire::load<uint64_t>(file.data() + at);
    store_crc(file, at, 8);
    at += kRecordHeaderBytes;
    if (length > file.size() - at - kRecordFooterBytes) return;
    store_crc(file, at, length);
    at += length + kRecordFooterBytes;
  }
}

void repair_table(std::string& file) {
  if (file.size() < kFooterSize) return;
  const std::string footer = file.substr(file.size() - kFooterSize);
  std::string_view handles = footer;
  Handle metaindex, index;
  if (!take_handle(handles, metaindex) || !take_handle(handles, index) || !repair_block(file, index)) return;
  try {
    BlockCursor entries(file.substr(index.offset, index.size), "index");
    while (entries.next()) {
      std::string_view value = entries.value();
      Handle block;
      if (take_handle(value, block)) repair_block(file, block);
    }
  } catch (const DataLossError&) {
    return;
  }
}

}  // namespace longhaul::fuzz

// The files of readers: a byte (0 to 2: TFRecord, plain, ZLIB or GZIP; 3: lines; 4: records of fixed length; +8: repair
// the checksums of plain records), the file. Reading goes on at any place as it would have.
#include "longhaul/host/readers/record_source.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/repair.h"

namespace {

using namespace longhaul;

OpenRecords open_of(uint8_t kind) {
  switch (kind % 5) {
    case 0: return tf_records();
    case 1: return tf_records(Compression::kZlib);
    case 2: return tf_records(Compression::kGzip);
    case 3: return text_lines(1);
    default: return fixed_length_records({.record_bytes = 3, .header_bytes = 2, .footer_bytes = 1, .hop_bytes = 2});
  }
}

void read_all(FileSystem& files, const OpenRecords& open) {
  const auto source = open(files, "file", {});
  std::string key, value;
  for (int i = 0; source->next(key, value); ++i) {
    if (i != 2) continue;
    const auto resumed = open(files, "file", source->place());
    std::string next_key, next_value;
    const bool more = resumed->next(next_key, next_value);
    if (more != source->next(key, value) || (more && (next_key != key || next_value != value))) __builtin_trap();
    if (!more) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t flags = input.byte();
  std::string contents = input.rest();
  if (flags & 8) fuzz::repair_records(contents);
  testing::MemoryFileSystem files;
  files.put("file", contents);
  try {
    read_all(files, open_of(flags & 7));
  } catch (const Error&) {
  }
  return 0;
}

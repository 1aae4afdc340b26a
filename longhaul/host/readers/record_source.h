#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The place of the next record, where reading can continue.
struct RecordPlace {
  uint64_t offset = 0;  // in the file
  int64_t number = 0;   // records, or lines, before it
};

// The records of one file, in order. One thread at a time.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The next record. False: there is none. After an error (DataLossError with the file and the offset) the next call
  // throws it again.
  virtual bool next(std::string& value) = 0;
  // The key of the last record from next().
  virtual std::string key() const = 0;
  bool next(std::string& key, std::string& value) {
    if (!next(value)) return false;
    key = this->key();
    return true;
  }
  virtual RecordPlace place() const = 0;
  // Whether the record returned last is known to be the file's last.
  virtual bool ended() const { return false; }
};

// Opens a file at its beginning, or at the place of another source of it. NotFoundError: no such file.
using OpenRecords =
    std::function<std::unique_ptr<RecordSource>(FileSystem& files, const std::string& path, const RecordPlace& from)>;

// The limit for a record whose length is not known in advance, or cannot be checked against the file's size.
inline constexpr int64_t kMostRecordBytes = int64_t{256} << 20;

// Lines, without \n or \r\n; the last one may be unterminated. Keys "path:line", from 1. ResourceExhaustedError: a line
// is longer than `most_line_bytes`.
OpenRecords text_lines(int64_t skip_header_lines = 0, int64_t most_line_bytes = kMostRecordBytes);

enum class Compression { kNone, kZlib, kGzip };
// "", "ZLIB" or "GZIP". InvalidArgumentError: anything else.
Compression compression_of(const std::string& type);

// TFRecord files. Keys "path:offset", with offsets in the uncompressed data. DataLossError "PATH: truncated record at
// OFFSET", or "corrupted record at". ResourceExhaustedError: a record of a compressed file is larger than
// `most_record_bytes`; in the file it may take only a thousandth of that.
OpenRecords tf_records(Compression compression = Compression::kNone, int64_t most_record_bytes = kMostRecordBytes);

struct FixedLengthFormat {
  int64_t record_bytes = 1;  // positive
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
  int64_t hop_bytes = 0;  // 0: record_bytes
};
// Keys "path:number", from 0. DataLossError: the file is shorter than header and footer; the last record is incomplete
// (if the records are contiguous).
OpenRecords fixed_length_records(const FixedLengthFormat& format);

// The file's contents as one record, its path as the key.
OpenRecords whole_files();
// The path as key and as value; no file is opened.
OpenRecords names_alone();

}  // namespace longhaul

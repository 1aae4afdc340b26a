#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Where the next record is, so that reading can go on there.
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
  // The name to know the record by that next() gave last.
  virtual std::string key() const = 0;
  bool next(std::string& key, std::string& value) {
    if (!next(value)) return false;
    key = this->key();
    return true;
  }
  virtual RecordPlace place() const = 0;
  // Whether the last record is known to have been the file's last.
  virtual bool ended() const { return false; }
};

// How a file is opened, at its beginning or at a place that another source of it was at. NotFoundError.
using OpenRecords =
    std::function<std::unique_ptr<RecordSource>(FileSystem& files, const std::string& path, const RecordPlace& from)>;

// What one record may take where no length says it beforehand that the file's size bears out.
inline constexpr int64_t kMostRecordBytes = int64_t{256} << 20;

// Lines, without \n or \r\n; the last one may lack its end. Keys "path:line", from 1. ResourceExhaustedError: a line is
// longer than `most_line_bytes`.
OpenRecords text_lines(int64_t skip_header_lines = 0, int64_t most_line_bytes = kMostRecordBytes);

enum class Compression { kNone, kZlib, kGzip };
// "", "ZLIB" or "GZIP". InvalidArgumentError.
Compression compression_of(const std::string& type);

// TFRecord files. Keys "path:offset", offsets before compression. DataLossError "PATH: truncated record at OFFSET", or
// "corrupted record at". ResourceExhaustedError: a record of a compressed file is larger than `most_record_bytes`, of
// which the thousandth part can stand in the file.
OpenRecords tf_records(Compression compression = Compression::kNone, int64_t most_record_bytes = kMostRecordBytes);

struct FixedLengthFormat {
  int64_t record_bytes = 1;  // positive
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
  int64_t hop_bytes = 0;  // 0: record_bytes
};
// Keys "path:number", from 0. DataLossError: the file is shorter than header and footer; the last record is not whole
// (where records lie one behind the other).
OpenRecords fixed_length_records(const FixedLengthFormat& format);

// The file's contents as one record, its path as the key.
OpenRecords whole_files();
// The path as key and as value; no file is opened.
OpenRecords names_alone();

}  // namespace longhaul

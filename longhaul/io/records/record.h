#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"

namespace longhaul {

// TFRecord framing. docs/formats/record.md
inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;

// Puts the frame around a payload that is already at record + kRecordHeaderBytes. The record then has
// kRecordHeaderBytes + payload_bytes + kRecordFooterBytes bytes.
void frame_record(char* record, size_t payload_bytes);

// Appends the payload as a record.
void append_record(std::string& out, std::string_view payload);

// Writes records to a borrowed file, whose owner must flush and close it. write() throws what WritableFile::append()
// throws; part of the record may then be in the file. One thread at a time may call.
class RecordWriter {
 public:
  explicit RecordWriter(WritableFile& file) : file_(file) {}
  void write(std::string_view payload);

 private:
  WritableFile& file_;
  std::string record_;
};

// Reads the records of a borrowed file. One thread at a time may call.
//
// The file may still be growing: next() reports the end of the file or an incomplete record, and can be called again
// later. A length field is never trusted beyond the size of the file.
class RecordReader {
 public:
  enum class Result {
    kRecord,
    kEnd,        // at the end of the file
    kTruncated,  // the file ends within a record
  };

  // `name` is for messages. `offset`: the byte at which a record begins, 0 or an earlier offset(). `most_bytes`: of a
  // payload.
  RecordReader(const ReadableFile& file, std::string name, uint64_t offset = 0, uint64_t most_bytes = UINT64_MAX);

  // On kRecord, `payload` is that of the record, valid until the next call; otherwise it is unchanged. Throws what
  // ReadableFile::read() throws. DataLossError "<name>: corrupted record at <offset>": a checksum is wrong; or the
  // payload is too long, for which no memory is taken. After this or a failed read, the reader stays at the same
  // record.
  Result next(std::string_view& payload);

  // The byte at which the next record begins.
  uint64_t offset() const { return offset_; }

 private:
  std::string_view window(uint64_t offset, size_t count);
  [[noreturn]] void throw_corrupted(const char* part, uint32_t got, uint32_t want) const;

  const ReadableFile& file_;
  std::string name_;
  const uint64_t most_bytes_;
  uint64_t offset_;
  std::string buffer_;
  size_t filled_ = 0;  // the number of bytes in the buffer, which begin at buffer_offset_ in the file
  uint64_t buffer_offset_ = 0;
};

}  // namespace longhaul

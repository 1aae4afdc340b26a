#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "longhaul/host/readers/record_source.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/io/records/inflate.h"
#include "longhaul/io/records/record.h"

namespace longhaul {
namespace {

[[noreturn]] void throw_truncated(const std::string& path, uint64_t offset) {
  throw DataLossError(fmt::format("{}: truncated record at {}", path, offset));
}

class PlainRecords : public RecordSource {
 public:
  PlainRecords(std::unique_ptr<ReadableFile> file, const std::string& path, const RecordPlace& from)
      : file_(std::move(file)), path_(path), number_(from.number), reader_(*file_, path, from.offset) {}

  using RecordSource::next;
  bool next(std::string& value) override {
    const uint64_t offset = reader_.offset();
    std::string_view payload;
    switch (reader_.next(payload)) {
      case RecordReader::Result::kEnd: return false;
      case RecordReader::Result::kTruncated: throw_truncated(path_, offset);
      case RecordReader::Result::kRecord: break;
    }
    value.assign(payload);
    begin_ = offset;
    ++number_;
    return true;
  }
  std::string key() const override { return fmt::format("{}:{}", path_, begin_); }
  RecordPlace place() const override { return {reader_.offset(), number_}; }

 private:
  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  int64_t number_;
  uint64_t begin_ = 0;  // of the last record
  RecordReader reader_;
};

class CompressedRecords : public RecordSource {
 public:
  CompressedRecords(std::unique_ptr<ReadableFile> file, const std::string& path, const RecordPlace& from,
                    InflateStream::Format format, int64_t most_record_bytes)
      : file_(std::move(file)),
        path_(path),
        most_record_bytes_(static_cast<uint64_t>(most_record_bytes)),
        number_(from.number),
        stream_(*file_, path, format) {
    std::string skipped;
    while (offset_ < from.offset) {
      if (take(skipped, std::min(from.offset - offset_, uint64_t{kStepBytes})) == 0) throw_truncated(path_, offset_);
    }
  }

  using RecordSource::next;
  bool next(std::string& value) override {
    if (failure_) std::rethrow_exception(failure_);
    begin_ = offset_;
    try {
      if (!take_record(value)) return false;
    } catch (const Error& error) {
      if (error.code() == Code::kDataLoss || error.code() == Code::kResourceExhausted) {
        failure_ = std::current_exception();
      }
      throw;
    }
    ++number_;
    return true;
  }
  std::string key() const override { return fmt::format("{}:{}", path_, begin_); }
  RecordPlace place() const override { return {offset_, number_}; }

 private:
  static constexpr size_t kStepBytes = 1 << 20;
  static constexpr uint64_t kMostExpansion = 1032;  // of deflate

  bool take_record(std::string& payload) {
    const size_t got = take(header_, kRecordHeaderBytes);
    if (got == 0) return false;
    if (got < kRecordHeaderBytes) throw_truncated(path_, begin_);
    check_crc("length", std::string_view(header_).substr(0, 8), std::string_view(header_).substr(8));
    uint64_t length;
    std::memcpy(&length, header_.data(), sizeof length);
    if (length / kMostExpansion > file_->size()) throw_truncated(path_, begin_);
    if (length > most_record_bytes_) throw_too_large(length);
    take_payload(payload, length);
    if (take(footer_, kRecordFooterBytes) < kRecordFooterBytes) throw_truncated(path_, begin_);
    check_crc("data", payload, footer_);
    return true;
  }

  // Memory grows with what there is, not with what the length says.
  void take_payload(std::string& payload, uint64_t length) {
    payload.clear();
    while (payload.size() < length) {
      if (take(step_, std::min(length - payload.size(), uint64_t{kStepBytes})) == 0) throw_truncated(path_, begin_);
      payload += step_;
    }
  }

  size_t take(std::string& bytes, size_t count) {
    bytes.resize(count);
    try {
      bytes.resize(stream_.read(bytes.data(), count));
    } catch (const DataLossError& error) {
      throw DataLossError(fmt::format("{}, in the record at {}", error.what(), begin_));
    }
    offset_ += bytes.size();
    return bytes.size();
  }

  void check_crc(const char* part, std::string_view data, std::string_view stored) const {
    uint32_t got;
    std::memcpy(&got, stored.data(), sizeof got);
    const uint32_t want = mask_crc32c(crc32c(data));
    if (got != want)
      throw DataLossError(
          fmt::format("{}: corrupted record at {}: {} crc {:#010x}, want {:#010x}", path_, begin_, part, got, want));
  }

  [[noreturn]] void throw_too_large(uint64_t length) const {
    throw ResourceExhaustedError(fmt::format("{}: the record at {} has {} bytes, more than {} (most_record_bytes)",
                                             path_, begin_, length, most_record_bytes_));
  }

  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  const uint64_t most_record_bytes_;
  int64_t number_;
  InflateStream stream_;
  uint64_t offset_ = 0;  // before compression, as is
  uint64_t begin_ = 0;   // of the record that is being read
  std::string header_, footer_, step_;
  std::exception_ptr failure_;
};

}  // namespace

Compression compression_of(const std::string& type) {
  if (type.empty()) return Compression::kNone;
  if (type == "ZLIB") return Compression::kZlib;
  if (type == "GZIP") return Compression::kGzip;
  throw InvalidArgumentError(fmt::format("compression must be empty, ZLIB or GZIP, not {}", type));
}

OpenRecords tf_records(Compression compression, int64_t most_record_bytes) {
  return [=](FileSystem& files, const std::string& path, const RecordPlace& from) -> std::unique_ptr<RecordSource> {
    if (compression == Compression::kNone) return std::make_unique<PlainRecords>(files.open(path), path, from);
    const auto format = compression == Compression::kZlib ? InflateStream::Format::kZlib : InflateStream::Format::kGzip;
    return std::make_unique<CompressedRecords>(files.open(path), path, from, format, most_record_bytes);
  };
}

}  // namespace longhaul

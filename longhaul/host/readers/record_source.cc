#include "longhaul/host/readers/record_source.h"

#include <fmt/format.h>

#include <cstring>

#include "longhaul/host/readers/file_window.h"

namespace longhaul {
namespace {

std::string numbered(const std::string& path, int64_t number) {
  const fmt::format_int digits(number);
  std::string key;
  key.reserve(path.size() + 1 + digits.size());
  key.append(path).append(1, ':').append(digits.data(), digits.size());
  return key;
}

class TextLines : public RecordSource {
 public:
  TextLines(std::unique_ptr<ReadableFile> file, std::string path, const RecordPlace& from, int64_t skip_header_lines,
            int64_t most_line_bytes)
      : file_(std::move(file)),
        path_(std::move(path)),
        most_line_bytes_(static_cast<size_t>(most_line_bytes)),
        offset_(from.offset),
        line_(from.number) {
    std::string skipped;
    while (line_ < skip_header_lines && take_line(skipped)) ++line_;
  }

  using RecordSource::next;
  bool next(std::string& value) override {
    if (!take_line(value)) return false;
    ++line_;
    return true;
  }
  std::string key() const override { return numbered(path_, line_); }
  RecordPlace place() const override { return {offset_, line_}; }

 private:
  bool take_line(std::string& line) {
    line.clear();
    bool any = false;
    uint64_t at = offset_;  // which stays before the line if a part of it cannot be read
    while (true) {
      const std::string_view rest = file_.some(at);
      if (rest.empty()) break;
      any = true;
      const void* end = std::memchr(rest.data(), '\n', rest.size());
      const size_t count =
          end == nullptr ? rest.size() : static_cast<size_t>(static_cast<const char*>(end) - rest.data());
      if (count > most_line_bytes_ - line.size()) throw_too_long();
      line.append(rest.data(), count);
      at += count + (end == nullptr ? 0 : 1);
      if (end != nullptr) break;
    }
    offset_ = at;
    if (line.ends_with('\r')) line.pop_back();
    return any;
  }

  [[noreturn]] void throw_too_long() const {
    throw ResourceExhaustedError(
        fmt::format("{}:{}: the line is longer than {} bytes (most_line_bytes)", path_, line_ + 1, most_line_bytes_));
  }

  FileWindow file_;
  const std::string path_;
  const size_t most_line_bytes_;
  uint64_t offset_;
  int64_t line_;
};

class FixedLengthRecords : public RecordSource {
 public:
  FixedLengthRecords(std::unique_ptr<ReadableFile> file, std::string path, const RecordPlace& from,
                     const FixedLengthFormat& format)
      : file_(std::move(file)),
        path_(std::move(path)),
        header_(static_cast<uint64_t>(format.header_bytes)),
        record_(static_cast<uint64_t>(format.record_bytes)),
        hop_(format.hop_bytes == 0 ? record_ : static_cast<uint64_t>(format.hop_bytes)),
        offset_(from.offset),
        number_(from.number) {
    const uint64_t size = file_.file_size(), footer = static_cast<uint64_t>(format.footer_bytes);
    if (header_ > size || footer > size - header_) {
      throw DataLossError(fmt::format("{}: the file has {} bytes, too few for a header of {} and a footer of {}", path_,
                                      size, header_, footer));
    }
    body_ = size - header_ - footer;
  }

  using RecordSource::next;
  bool next(std::string& value) override {
    if (offset_ >= body_) return false;
    const uint64_t rest = body_ - offset_;
    if (record_ > rest && hop_ != record_) return false;
    const std::string_view record = record_ > rest ? std::string_view() : file_.at(header_ + offset_, record_);
    if (record.size() < record_) {
      throw DataLossError(fmt::format("{}: truncated record at {}: {} bytes, want {}", path_, header_ + offset_,
                                      std::min(rest, record_), record_));
    }
    value.assign(record);
    ++number_;
    offset_ += hop_;
    return true;
  }
  std::string key() const override { return numbered(path_, number_ - 1); }
  RecordPlace place() const override { return {offset_, number_}; }

 private:
  FileWindow file_;
  const std::string path_;
  const uint64_t header_, record_, hop_;
  uint64_t body_ = 0;
  uint64_t offset_;  // in the body
  int64_t number_;
};

class SingleRecord : public RecordSource {
 public:
  SingleRecord(std::string key, std::string value, const RecordPlace& from)
      : key_(std::move(key)), value_(std::move(value)), number_(from.number) {}

  using RecordSource::next;
  bool next(std::string& value) override {
    if (number_ > 0) return false;
    value = std::move(value_);
    ++number_;
    return true;
  }
  std::string key() const override { return key_; }
  RecordPlace place() const override { return {0, number_}; }
  bool ended() const override { return number_ > 0; }

 private:
  const std::string key_;
  std::string value_;
  int64_t number_;
};

}  // namespace

OpenRecords text_lines(int64_t skip_header_lines, int64_t most_line_bytes) {
  return [=](FileSystem& files, const std::string& path, const RecordPlace& from) {
    return std::make_unique<TextLines>(files.open(path), path, from, skip_header_lines, most_line_bytes);
  };
}

OpenRecords fixed_length_records(const FixedLengthFormat& format) {
  return [=](FileSystem& files, const std::string& path, const RecordPlace& from) {
    return std::make_unique<FixedLengthRecords>(files.open(path), path, from, format);
  };
}

OpenRecords whole_files() {
  return [](FileSystem& files, const std::string& path, const RecordPlace& from) {
    return std::make_unique<SingleRecord>(path, read_file(files, path), from);
  };
}

OpenRecords names_alone() {
  return [](FileSystem&, const std::string& path, const RecordPlace& from) {
    return std::make_unique<SingleRecord>(path, path, from);
  };
}

}  // namespace longhaul

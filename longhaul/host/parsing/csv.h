#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;            // fields may be in double quotes, as in RFC 4180: "a ""word"", another"
  std::string na_value;          // means a missing value, as an empty field does
  std::vector<int64_t> columns;  // to return, counted from 0, increasing; empty: all
};

// Splits records into fields. One thread at a time; reuses its memory between calls.
class CsvSplitter {
 public:
  explicit CsvSplitter(const CsvFormat& format) : delimiter_(format.delimiter), quotes_(format.quotes) {}

  // The fields of one record, one more than there are delimiters outside quotes. They point into the record, or into
  // this object, and are valid until the next call. A line end after the record is ignored.
  // InvalidArgumentError "column 2: ...": a misplaced quote, an unclosed quote, a line end outside quotes; more than a
  // million fields (2^20).
  std::span<const std::string_view> split(std::string_view record);

 private:
  std::string_view take_field(std::string_view& rest);
  std::string_view take_quoted(std::string_view& rest);
  [[noreturn]] void fail(const char* why) const;

  const char delimiter_;
  const bool quotes_;
  bool odd_characters_ = false;  // the record has some of " \r \n
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

// The fields of `records`, a string tensor of any shape: returns a tensor of that shape for each of `defaults`, with
// its dtype (float, double, int32, int64, string). A default of one element replaces missing values; an empty one means
// that none may be missing. `keys` are the records' names for messages, or undefined.
//
// InvalidArgumentError "KEY, column 2: ..." (or "record 3, column 2: ...", both from 1): as from split(), and for a
// field that is missing or not a number of that dtype; "KEY, the record has 3 fields, want 4".
std::vector<Tensor> decode_csv(const Tensor& records, const Tensor& keys, std::span<const Tensor> defaults,
                               const CsvFormat& format);

}  // namespace longhaul

#include "longhaul/host/parsing/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "longhaul/host/parsing/parse_number.h"

namespace longhaul {
namespace {

constexpr size_t kMostFields =
    size_t{1} << 20;  // of a record: each takes memory, an empty one takes a byte of the file

bool contains(std::string_view text, char c) {
  return std::memchr(text.data(), c, text.size()) != nullptr;
}

std::string_view without_line_end(std::string_view record) {
  if (record.ends_with('\n')) record.remove_suffix(1);
  if (record.ends_with('\r')) record.remove_suffix(1);
  return record;
}

std::string quoted(std::string_view field) {
  constexpr size_t kMost = 40;
  return fmt::format("\"{}{}\"", field.substr(0, kMost), field.size() > kMost ? "..." : "");
}

// One of the results, and how fields get into it.
class Column {
 public:
  Column(size_t source, const Tensor& default_value, const Shape& shape)
      : source_(source), default_(default_value), values_(default_value.dtype(), shape) {}

  size_t source() const { return source_; }
  Tensor take() { return std::move(values_); }

  // Takes the field off the front of the rest of a record, which then is empty or starts with the delimiter. Only for
  // what is common: a plain number, or a text without quotes. False: it takes a closer look.
  bool take_plain(size_t row, std::string_view& rest, char delimiter) {
    switch (values_.dtype()) {
      case kFloat: return take_number<float>(row, rest, delimiter);
      case kDouble: return take_number<double>(row, rest, delimiter);
      case kInt32: return take_number<int32_t>(row, rest, delimiter);
      case kInt64: return take_number<int64_t>(row, rest, delimiter);
      default: return take_text(row, rest, delimiter);
    }
  }

  void set(size_t row, std::string_view field, const std::string& na_value) {
    const bool missing = field.empty() || (!na_value.empty() && field == na_value);
    switch (values_.dtype()) {
      case kFloat: return set_number<float>(row, field, missing);
      case kDouble: return set_number<double>(row, field, missing);
      case kInt32: return set_number<int32_t>(row, field, missing);
      case kInt64: return set_number<int64_t>(row, field, missing);
      default: break;
    }
    std::string& value = static_cast<std::string*>(values_.mutable_data())[row];
    if (missing) {
      value = default_of<std::string>();
    } else {
      value.assign(field);
    }
  }

 private:
  template <typename T>
  bool take_number(size_t row, std::string_view& rest, char delimiter) {
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), static_cast<T*>(values_.mutable_data())[row]);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return error == std::errc() && (rest.empty() || rest[0] == delimiter);
  }

  bool take_text(size_t row, std::string_view& rest, char delimiter) {
    const std::string_view field = rest.substr(0, rest.find(delimiter));
    if (field.empty() || contains(field, '"') || contains(field, '\n') || contains(field, '\r')) return false;
    static_cast<std::string*>(values_.mutable_data())[row].assign(field);
    rest.remove_prefix(field.size());
    return true;
  }

  template <typename T>
  const T& default_of() const {
    if (default_.num_elements() == 0) fail("the field is required but missing");
    return static_cast<const T*>(default_.data())[0];
  }

  template <typename T>
  void set_number(size_t row, std::string_view field, bool missing) {
    T* const values = static_cast<T*>(values_.mutable_data());
    if (missing) {
      values[row] = default_of<T>();
    } else if (const auto number = parse_number<T>(field)) {
      values[row] = *number;
    } else {
      fail(fmt::format("{} is not a valid {}", quoted(field), dtype_name(values_.dtype())));
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw InvalidArgumentError(fmt::format("column {}: {}", source_ + 1, why));
  }

  const size_t source_;
  const Tensor default_;
  Tensor values_;
};

std::vector<Column> columns_of(const Shape& shape, std::span<const Tensor> defaults, const CsvFormat& format) {
  if (!format.columns.empty() && format.columns.size() != defaults.size()) {
    throw InvalidArgumentError(
        fmt::format("{} columns are selected, but there are {} defaults", format.columns.size(), defaults.size()));
  }
  std::vector<Column> columns;
  for (size_t i = 0; i < defaults.size(); ++i) {
    const DType dtype = defaults[i].dtype();
    if (dtype != kFloat && dtype != kDouble && dtype != kInt32 && dtype != kInt64 && dtype != kString) {
      throw InvalidArgumentError(fmt::format("column {} cannot have type {}", i + 1, dtype_name(dtype)));
    }
    if (defaults[i].num_elements() > 1) {
      throw InvalidArgumentError(fmt::format("the default of column {} has more than one value", i + 1));
    }
    columns.emplace_back(format.columns.empty() ? i : static_cast<size_t>(format.columns[i]), defaults[i], shape);
  }
  return columns;
}

// Whether Column::take_plain() understands fields of that format as they are meant.
bool can_be_plain(const CsvFormat& format) {
  return format.columns.empty() && format.na_value.empty() &&
         std::string_view(",;|: \t").find(format.delimiter) != std::string_view::npos;
}

bool take_plain_record(std::vector<Column>& columns, size_t row, std::string_view record, char delimiter) {
  record = without_line_end(record);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0 && record.empty()) return false;
    if (i > 0) record.remove_prefix(1);
    if (!columns[i].take_plain(row, record, delimiter)) return false;
  }
  return record.empty();
}

void check_count(size_t fields, const std::vector<Column>& columns, bool all) {
  const size_t want = columns.empty() ? 0 : columns.back().source() + 1;
  if (all && fields != want) throw InvalidArgumentError(fmt::format("the record has {} fields, want {}", fields, want));
  if (fields < want)
    throw InvalidArgumentError(fmt::format("the record has {} fields, want at least {}", fields, want));
}

}  // namespace

std::span<const std::string_view> CsvSplitter::split(std::string_view record) {
  record = without_line_end(record);
  fields_.clear();
  unquoted_.clear();
  odd_characters_ = contains(record, '\n') || contains(record, '\r') || (quotes_ && contains(record, '"'));
  if (odd_characters_) unquoted_.reserve(record.size());  // so that what points into it stays where it is
  while (true) {
    if (fields_.size() >= kMostFields) fail("there are too many fields");
    fields_.push_back(take_field(record));
    if (record.empty()) return fields_;
    record.remove_prefix(1);  // the delimiter
    if (record.empty()) {
      fields_.emplace_back();
      return fields_;
    }
  }
}

// Takes a field off the front of `rest`, which then is empty or starts with the delimiter.
std::string_view CsvSplitter::take_field(std::string_view& rest) {
  if (odd_characters_ && quotes_ && rest.starts_with('"')) return take_quoted(rest);
  const void* const end = rest.empty() ? nullptr : std::memchr(rest.data(), delimiter_, rest.size());
  const size_t size = end == nullptr ? rest.size() : static_cast<size_t>(static_cast<const char*>(end) - rest.data());
  const std::string_view field = rest.substr(0, size);
  if (odd_characters_) {
    if (quotes_ && contains(field, '"')) fail("a quote in an unquoted field");
    if (contains(field, '\n') || contains(field, '\r')) fail("a line break outside quotes");
  }
  rest.remove_prefix(size);
  return field;
}

std::string_view CsvSplitter::take_quoted(std::string_view& rest) {
  const size_t begin = unquoted_.size();
  rest.remove_prefix(1);
  while (true) {
    const size_t quote = rest.find('"');
    if (quote == std::string_view::npos) fail("a quote is not closed");
    unquoted_.append(rest.substr(0, quote));
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    unquoted_.push_back('"');
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest[0] != delimiter_) fail("unexpected text between a closing quote and the delimiter");
  return std::string_view(unquoted_).substr(begin);
}

void CsvSplitter::fail(const char* why) const {
  throw InvalidArgumentError(fmt::format("column {}: {}", fields_.size() + 1, why));
}

std::vector<Tensor> decode_csv(const Tensor& records, const Tensor& keys, std::span<const Tensor> defaults,
                               const CsvFormat& format) {
  const auto texts = records.flat<std::string>();
  if (keys.defined() && keys.flat<std::string>().size() != texts.size()) {
    throw InvalidArgumentError(fmt::format("{} keys were given for {} records", keys.num_elements(), texts.size()));
  }
  std::vector<Column> columns = columns_of(records.shape(), defaults, format);
  CsvSplitter splitter(format);
  const bool plain = can_be_plain(format);
  for (size_t row = 0; row < texts.size(); ++row) {
    if (plain && take_plain_record(columns, row, texts[row], format.delimiter)) continue;
    try {
      const auto fields = splitter.split(texts[row]);
      check_count(fields.size(), columns, format.columns.empty());
      for (Column& column : columns) column.set(row, fields[column.source()], format.na_value);
    } catch (const InvalidArgumentError& error) {
      const std::string name = keys.defined() ? keys.flat<std::string>()[row] : fmt::format("record {}", row + 1);
      throw InvalidArgumentError(name + ", " + error.what());
    }
  }
  std::vector<Tensor> results;
  for (Column& column : columns) results.push_back(column.take());
  return results;
}

}  // namespace longhaul

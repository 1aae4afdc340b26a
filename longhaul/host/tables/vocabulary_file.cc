#include "longhaul/host/tables/vocabulary_file.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

struct Line {
  const std::string& path;
  int64_t number;  // from 0 on
  std::string_view text;

  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(fmt::format("{}:{}: {}", path, number + 1, why));
  }
};

// Takes a line off the front of a text that is not empty.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

struct LineCount {
  int64_t lines = 0;
  int64_t first_empty = -1;  // -1: none is
};

LineCount count_lines(std::string_view text) {
  LineCount count;
  for (; !text.empty(); ++count.lines) {
    if (take_line(text).empty() && count.first_empty < 0) count.first_empty = count.lines;
  }
  return count;
}

std::string_view column(const Line& line, int64_t index, char delimiter) {
  std::string_view rest = line.text;
  for (int64_t i = 0;; ++i) {
    const size_t end = rest.find(delimiter);
    if (i == index) return rest.substr(0, end);
    if (end == std::string_view::npos) {
      line.refuse(fmt::format("Invalid number of columns: expected at least {} but got {}", index + 1, i + 1));
    }
    rest.remove_prefix(end + 1);
  }
}

template <typename T>
void parse(const Line& line, std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size()) return;
  line.refuse(fmt::format("Field '{}' is not a valid {}", text.substr(0, 40), dtype_name(kDTypeOf<T>)));
}

void set_element(Tensor* column, const Line& line, std::string_view text) {
  const auto row = static_cast<size_t>(line.number);
  switch (column->dtype()) {
    case kFloat: return parse(line, text, &column->mutable_flat<float>()[row]);
    case kDouble: return parse(line, text, &column->mutable_flat<double>()[row]);
    case kInt32: return parse(line, text, &column->mutable_flat<int32_t>()[row]);
    case kInt64: return parse(line, text, &column->mutable_flat<int64_t>()[row]);
    case kString: column->mutable_flat<std::string>()[row] = std::string(text); return;
    default: line.refuse(fmt::format("values of type {} cannot be read from a file", dtype_name(column->dtype())));
  }
}

void set_from(Tensor* column_of_table, const Line& line, int64_t index, char delimiter) {
  if (index == VocabularyFormat::kLineNumber) {
    column_of_table->mutable_flat<int64_t>()[static_cast<size_t>(line.number)] = line.number;
  } else {
    const bool whole = index == VocabularyFormat::kWholeLine;
    set_element(column_of_table, line, whole ? line.text : column(line, index, delimiter));
  }
}

// How many lines are read, none of which is empty: each line takes more memory than an empty one has bytes.
int64_t lines_to_read(const std::string& path, const LineCount& there, int64_t vocab_size) {
  if (vocab_size >= 0 && there.lines < vocab_size) {
    throw InvalidArgumentError(
        fmt::format("Invalid vocab_size in {}: expected {} but got {}", path, vocab_size, there.lines));
  }
  const int64_t wanted = vocab_size < 0 ? there.lines : vocab_size;
  if (there.first_empty >= 0 && there.first_empty < wanted) {
    Line{path, there.first_empty, {}}.refuse("Invalid content: empty line found");
  }
  if (there.lines > wanted)
    log_warning("{}: only the first {} of {} lines are read (vocab_size)", path, wanted, there.lines);
  return wanted;
}

}  // namespace

std::pair<Tensor, Tensor> read_vocabulary(FileSystem& files, const std::string& path, DType keys, DType values,
                                          const VocabularyFormat& format) {
  const std::string text = read_file(files, path);
  const int64_t count = lines_to_read(path, count_lines(text), format.vocab_size);
  std::pair<Tensor, Tensor> table{Tensor(keys, {count}), Tensor(values, {count})};
  std::string_view rest = text;
  for (int64_t i = 0; i < count; ++i) {
    const Line line{path, i, take_line(rest)};
    set_from(&table.first, line, format.key_index, format.delimiter);
    set_from(&table.second, line, format.value_index, format.delimiter);
  }
  return table;
}

}  // namespace longhaul

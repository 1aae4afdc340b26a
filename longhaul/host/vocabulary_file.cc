#include "longhaul/host/vocabulary_file.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

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

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
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
  line.refuse(fmt::format("Field '{}' is not a valid {}", text, dtype_name(kDTypeOf<T>)));
}

void set_element(Tensor* column, const Line& line, std::string_view text) {
  const auto row = static_cast<size_t>(line.number);
  switch (column->dtype()) {
    case kFloat: return parse(line, text, &column->mutable_flat<float>()[row]);
    case kDouble: return parse(line, text, &column->mutable_flat<double>()[row]);
    case kInt32: return parse(line, text, &column->mutable_flat<int32_t>()[row]);
    case kInt64: return parse(line, text, &column->mutable_flat<int64_t>()[row]);
    case kString: column->mutable_flat<std::string>()[row] = std::string(text); return;
    default: line.refuse(fmt::format("{} cannot be read from a file", dtype_name(column->dtype())));
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

size_t lines_to_read(const std::string& path, size_t there, int64_t vocab_size) {
  if (vocab_size < 0) return there;
  const auto wanted = static_cast<size_t>(vocab_size);
  if (there < wanted) {
    throw InvalidArgumentError(fmt::format("Invalid vocab_size in {}: expected {} but got {}", path, wanted, there));
  }
  if (there > wanted) log_warning("{} is read up to line {}; it has {}", path, wanted, there);
  return wanted;
}

}  // namespace

std::pair<Tensor, Tensor> read_vocabulary(FileSystem& files, const std::string& path, DType keys, DType values,
                                          const VocabularyFormat& format) {
  const std::string text = read_file(files, path);
  const std::vector<std::string_view> lines = split_lines(text);
  const size_t count = lines_to_read(path, lines.size(), format.vocab_size);
  const Shape shape{static_cast<int64_t>(count)};
  std::pair<Tensor, Tensor> table{Tensor(keys, shape), Tensor(values, shape)};
  for (size_t i = 0; i < count; ++i) {
    const Line line{path, static_cast<int64_t>(i), lines[i]};
    if (line.text.empty()) line.refuse("Invalid content: empty line found");
    set_from(&table.first, line, format.key_index, format.delimiter);
    set_from(&table.second, line, format.value_index, format.delimiter);
  }
  return table;
}

}  // namespace longhaul

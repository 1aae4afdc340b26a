// Records of CSV: a byte for the format, one for the number of columns, the records, separated by zeros.
#include "longhaul/base/error.h"
#include "longhaul/host/parsing/csv.h"
#include "tests/fuzz/input.h"

namespace longhaul::fuzz {
namespace {

Tensor take_records(std::string text) {
  std::vector<std::string> records(1);
  for (const char byte : text) {
    if (byte == '\0') {
      records.emplace_back();
    } else {
      records.back() += byte;
    }
  }
  return Tensor::of<std::string>(records);
}

Tensor default_of_column(uint8_t number) {
  switch (number % 6) {
    case 0: return Tensor::of<float>({0});
    case 1: return Tensor::of<std::string>({"none"});
    case 2: return Tensor::of<int32_t>({1});
    case 3: return Tensor::of<int64_t>({-1});
    case 4: return Tensor::of<double>({0.5});
    default: return Tensor(kInt64, {0});
  }
}

CsvFormat take_format(uint8_t flags) {
  CsvFormat format;
  format.quotes = (flags & 1) == 0;
  format.delimiter = ",;\t "[flags >> 1 & 3];
  if (flags & 8) format.na_value = "NA";
  if (flags & 16) format.columns = {1, 3};
  return format;
}

}  // namespace
}  // namespace longhaul::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const CsvFormat format = fuzz::take_format(input.byte());
  std::vector<Tensor> defaults;
  const uint8_t columns = format.columns.empty() ? input.byte() % 8 : 2;
  for (uint8_t i = 0; i < columns; ++i) defaults.push_back(fuzz::default_of_column(i));
  try {
    decode_csv(fuzz::take_records(input.rest()), Tensor(), defaults, format);
  } catch (const Error&) {
  }
  return 0;
}

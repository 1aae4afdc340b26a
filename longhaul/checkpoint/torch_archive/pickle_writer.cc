#include "longhaul/checkpoint/torch_archive/pickle_writer.h"

#include <limits>

#include "longhaul/checkpoint/torch_archive/torch_globals.h"

namespace longhaul {

void PickleWriter::put_little_endian(uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
}

void PickleWriter::put_global(std::string_view module_and_name) {
  put(PickleOpcode::kGlobal);
  bytes_ += module_and_name;
  bytes_ += '\n';
}

void PickleWriter::put_text(std::string_view text) {
  put(PickleOpcode::kBinUnicode);
  put_little_endian(text.size(), 4);
  bytes_ += text;
}

void PickleWriter::put_number(int64_t number) {
  if (number >= 0 && number < 256) {
    put(PickleOpcode::kBinInt1);
    put_little_endian(static_cast<uint64_t>(number), 1);
  } else if (number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max()) {
    put(PickleOpcode::kBinInt);
    put_little_endian(static_cast<uint64_t>(number), 4);
  } else {
    put(PickleOpcode::kLong1);
    put_little_endian(8, 1);
    put_little_endian(static_cast<uint64_t>(number), 8);
  }
}

void PickleWriter::put_tuple(std::span<const int64_t> numbers) {
  put(PickleOpcode::kMark);
  for (const int64_t number : numbers) put_number(number);
  put(PickleOpcode::kTuple);
}

void PickleWriter::put_empty_ordered_dict() {
  put_global(kOrderedDict);
  put(PickleOpcode::kEmptyTuple);
  put(PickleOpcode::kReduce);
}

// The first byte of a character tells how many follow, and which of them the next may be: none that a shorter form has,
// no half of a surrogate pair, none above U+10FFFF.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    if (first < 0xc2 || first > 0xf4) return false;
    const int following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    int least = 0x80, most = 0xbf;
    if (first == 0xe0) least = 0xa0;
    if (first == 0xed) most = 0x9f;
    if (first == 0xf0) least = 0x90;
    if (first == 0xf4) most = 0x8f;
    for (int k = 0; k < following; ++k, ++i) {
      if (i == text.size()) return false;
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < (k == 0 ? least : 0x80) || byte > (k == 0 ? most : 0xbf)) return false;
    }
  }
  return true;
}

}  // namespace longhaul

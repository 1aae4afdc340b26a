#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "longhaul/checkpoint/torch_archive/pickle_opcodes.h"

namespace longhaul {

// Writes the opcodes of a pickle, for Python and for libtorch, whose reader knows fewer of them.
class PickleWriter {
 public:
  PickleWriter() {
    put(PickleOpcode::kProto);
    bytes_.push_back(2);
  }

  void put(PickleOpcode opcode) { bytes_.push_back(static_cast<char>(opcode)); }
  void put_global(std::string_view module_and_name);  // with a '\n' between them
  void put_text(std::string_view text);
  void put_number(int64_t number);
  void put_tuple(std::span<const int64_t> numbers);
  void put_empty_ordered_dict();

  // Ends the pickle.
  std::string take() {
    put(PickleOpcode::kStop);
    return std::move(bytes_);
  }

 private:
  void put_little_endian(uint64_t value, size_t count);

  std::string bytes_;
};

// Whether a text is valid UTF-8, which the texts of a pickle must be.
bool is_utf8(std::string_view text);

}  // namespace longhaul

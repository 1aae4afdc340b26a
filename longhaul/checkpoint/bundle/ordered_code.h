#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul {

// Values as bytes that sort like the values. The keys of stored slices consist of them (docs/formats/tensor_bundle.md).
void append_ordered_unsigned(std::string& out, uint64_t value);
void append_ordered_signed(std::string& out, int64_t value);
void append_ordered_string(std::string& out, std::string_view text);

}  // namespace longhaul

#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace longhaul {

// How many messages, strings and byte strings a serialized message of that type has in it, in all: what makes a parsed
// message many times larger than its bytes. Counting takes no memory and stops above `most`. Nothing: it is malformed,
// or nested deeper than `deepest`.
std::optional<uint64_t> count_fields(const google::protobuf::Descriptor& type, std::string_view bytes, int deepest,
                                     uint64_t most);

// The same for the text form, roughly: each opening bracket and each string counts.
uint64_t count_text_fields(std::string_view text);

}  // namespace longhaul

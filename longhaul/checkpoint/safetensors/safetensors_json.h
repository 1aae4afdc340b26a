#pragma once

#include <string>
#include <string_view>

#include "longhaul/checkpoint/safetensors/safetensors_header.h"

// The JSON of a safetensors file's header. What the offsets mean is looked at elsewhere (safetensors_header.h).
namespace longhaul {

// DataLossError: it is not JSON, or not what a header has (other keys, other values, something twice); `path` begins
// the message, which names the place. It must begin with "{". Nothing is believed of lengths, so memory taken is that
// of what is there.
SafetensorsHeader safetensors_from_json(std::string_view json, const std::string& path);

// InvalidArgumentError: a text is not UTF-8.
std::string safetensors_to_json(const SafetensorsHeader& header, const std::string& path);

// A name from a file, quoted for messages: control characters as "\x00", a long one cut.
std::string quoted_name(std::string_view name);

}  // namespace longhaul

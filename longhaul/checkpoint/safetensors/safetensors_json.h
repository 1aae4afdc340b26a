#pragma once

#include <string>
#include <string_view>

#include "longhaul/checkpoint/safetensors/safetensors_header.h"

// The JSON of a safetensors file's header. The offsets are checked elsewhere (safetensors_header.h).
namespace longhaul {

// DataLossError: it is not JSON, or not a valid header (other keys, other values, duplicates); `path` begins the
// message, which names the place. The text must begin with "{". Lengths are not trusted, so memory use depends only on
// the actual contents.
SafetensorsHeader safetensors_from_json(std::string_view json, const std::string& path);

// InvalidArgumentError: a text is not UTF-8.
std::string safetensors_to_json(const SafetensorsHeader& header, const std::string& path);

// A name from a file, quoted for messages: control characters as "\x00", long names cut.
std::string quoted_name(std::string_view name);

}  // namespace longhaul

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Whether a name matches: `*` any characters, `?` one, `[a-z]` one of these, `[^a-z]` or `[!a-z]` one other than these,
// `\` makes the next character literal. None of them matches `/`.
bool matches_pattern(std::string_view name, std::string_view pattern);

// The paths that match, sorted; empty if there are none. Directories are matched part by part; literal parts of the
// pattern are kept as written.
std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern);

}  // namespace longhaul

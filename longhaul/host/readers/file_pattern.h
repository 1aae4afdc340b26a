#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// Whether a name matches: `*` any characters, `?` one, `[a-z]` one of these, `[^a-z]` or `[!a-z]` one that is none of
// these, `\` takes the next as it is. None of them stands for `/`.
bool matches_pattern(std::string_view name, std::string_view pattern);

// The paths that match, sorted; empty where there are none. Directories are matched part by part; a pattern's plain
// parts are kept as they are written.
std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern);

}  // namespace longhaul

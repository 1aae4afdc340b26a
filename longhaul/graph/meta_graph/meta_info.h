#pragma once

#include <google/protobuf/any.pb.h>

#include <optional>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// MetaGraphDef.MetaInfoDef.any_info of the meta graph in a file, without its graph: only the lengths of the fields
// before it are read, so neither time nor memory grows with the graph. nullopt: there is no such file, it has no
// any_info or more than 64 KiB of it, is text or damaged, or has more than a million fields in a message searched.
// Throws what the file system throws.
std::optional<google::protobuf::Any> read_any_info(FileSystem& files, const std::string& path);

}  // namespace longhaul

#pragma once

#include <google/protobuf/any.pb.h>

#include <optional>
#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// MetaGraphDef.MetaInfoDef.any_info of the meta graph in a file, without its graph: of the fields before it only the
// lengths are read, so neither time nor memory grows with the graph. Nothing: there is no such file, it says nothing,
// is text or damaged, has more than a million fields where one is looked for, or more than 64 KiB to say. Throws what
// the file system does.
std::optional<google::protobuf::Any> read_any_info(FileSystem& files, const std::string& path);

}  // namespace longhaul

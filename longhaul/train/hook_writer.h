#pragma once

#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// The writer that a hook was given, or the one that all who write to the directory share; nullptr: it was given
// neither. What the file system throws: the directory cannot be made.
std::shared_ptr<FileWriter> hook_writer(const std::shared_ptr<FileWriter>& given, const std::string& directory,
                                        FileSystem* files, Clock* clock);

}  // namespace longhaul

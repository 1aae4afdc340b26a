#include "longhaul/train/hook_writer.h"

#include "longhaul/events/file_writer_cache.h"

namespace longhaul {

std::shared_ptr<FileWriter> hook_writer(const std::shared_ptr<FileWriter>& given, const std::string& directory,
                                        FileSystem* files, Clock* clock) {
  if (given != nullptr || directory.empty()) return given;
  return FileWriterCache::get(directory, {.files = files, .clock = clock});
}

}  // namespace longhaul

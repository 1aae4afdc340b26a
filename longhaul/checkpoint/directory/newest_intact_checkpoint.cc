#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"

namespace longhaul {

IntactCheckpoint newest_intact_checkpoint(FileSystem& files, const std::string& directory, const std::string& basename,
                                          const std::string& latest_filename) {
  IntactCheckpoint result;
  for (const std::string& prefix : checkpoint_candidates(files, directory, basename, latest_filename)) {
    try {
      const auto damages = BundleReader(files, prefix).verify();
      if (damages.empty()) {
        result.prefix = prefix;
        return result;
      }
      result.skipped.push_back({prefix, damages.front()});
    } catch (const Error& error) {
      result.skipped.push_back({prefix, error.what()});
    }
  }
  return result;
}

}  // namespace longhaul

#include "longhaul/checkpoint/retention/read_back.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/io/files/page_cache.h"

namespace longhaul {
namespace {

// Large data is read past the kernel's cache anyhow, the rest would come from there: what was written, whatever the
// disk has.
void forget_cached_checkpoint(FileSystem& files, const std::string& prefix) {
  forget_cached(index_path(prefix));
  for (const std::string& path : data_files_of(files, prefix)) forget_cached(path);
}

// Empty: the checkpoint is whole.
std::string damage_of(FileSystem& files, const std::string& prefix) {
  try {
    const std::vector<std::string> damages = BundleReader(files, prefix).verify();
    if (damages.empty()) return "";
    return damages.size() == 1 ? damages[0] : fmt::format("{} (and {} more)", damages[0], damages.size() - 1);
  } catch (const DataLossError& error) {
    return error.what();
  }
}

}  // namespace

void read_back(FileSystem& files, const std::string& prefix, const std::string& meta_suffix) {
  forget_cached_checkpoint(files, prefix);
  const std::string damage = damage_of(files, prefix);
  if (damage.empty()) return;
  const std::string renamed = mark_corrupt(files, prefix, meta_suffix);
  remove_corrupt_sets(files, directory_name(prefix), kCorruptSetsKept);
  throw DataLossError(
      fmt::format("{} was written but cannot be read back: {}; it was renamed to {}, and older checkpoints are kept. "
                  "Check the disk",
                  prefix, damage, renamed));
}

}  // namespace longhaul

#include "longhaul/train/read_back.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/corrupt_set.h"

namespace longhaul {
namespace {

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
  const std::string damage = damage_of(files, prefix);
  if (damage.empty()) return;
  const std::string renamed = mark_corrupt(files, prefix, meta_suffix);
  remove_corrupt_sets(files, directory_name(prefix), kCorruptSetsKept);
  throw DataLossError(fmt::format(
      "{} was written, but cannot be read back: {}; it is now {}, and older checkpoints stay. Check the disk", prefix,
      damage, renamed));
}

}  // namespace longhaul

#pragma once

#include <string>
#include <vector>

#include "longhaul/train/saver.h"

namespace longhaul {

// Hands a saver the checkpoints that it goes on managing after a restart: those that the state file of `directory`
// lists, and `restored`, which a crash may have kept from being listed. The `damaged` are left out, and so are those of
// another directory, of which this one is a copy perhaps: they are not this run's to delete. Without a usable state
// file nothing is known of what is to be kept for good: then it is `restored` alone.
void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory,
                             const std::vector<std::string>& damaged, const std::string& restored);

}  // namespace longhaul

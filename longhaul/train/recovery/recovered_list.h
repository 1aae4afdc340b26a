#pragma once

#include <string>
#include <vector>

#include "longhaul/train/recovery/fall_back.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Hands a saver the checkpoints that it goes on managing after a restart: those that the state file of `directory`
// lists, and the one that was restored, which a crash may have kept from being listed. The damaged are left out, and so
// are those of another directory, of which this one is a copy perhaps: they are not this run's to delete. Those passed
// over, now or by an earlier run that has not come as far since, come before the one that was restored instead, and are
// kept until a checkpoint of a later step than their own is saved. Without a usable state file
// nothing is known of what is to be kept for good: then it is the restored one alone. The log says which there are of
// its name beside those, as nobody deletes them: of a run that kept all, perhaps.
void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory, const FallBack& recovery);

}  // namespace longhaul

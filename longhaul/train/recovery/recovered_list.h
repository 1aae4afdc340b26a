#pragma once

#include <string>
#include <vector>

#include "longhaul/train/recovery/fall_back.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Gives a saver the checkpoints that it manages after a restart: those in the state file of `directory`, and the
// restored one, which may be missing there after a crash. Damaged ones are excluded, and so are those of another
// directory (this one may be a copy of it): this run must not delete them. Those skipped now, or by an earlier run that
// has not come as far since, precede the one restored instead, and are kept until a checkpoint of a later step than
// their own is saved. Without a usable state file it is not known which to keep for good: then it manages only the
// restored one. Other checkpoints of the same name, perhaps of a run that kept all, are logged, as they will never be
// deleted.
void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory, const FallBack& recovery);

}  // namespace longhaul

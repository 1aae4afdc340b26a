#pragma once

#include <string>
#include <vector>

#include "longhaul/train/recovery/fall_back.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Gives a saver the checkpoints that it manages after a restart: those in the state file of `directory`, and the
// restored one, which may be missing there after a crash. Damaged ones are excluded, and so are those of another
// directory (this one may be a copy of it): this run must not delete them. Checkpoints that were skipped now, or by an
// earlier run and not passed since, precede the restored one, and are kept until a checkpoint of a later step than
// theirs is saved. Without a usable state file it is not known which to keep for good; the saver then manages only the
// restored one. Other checkpoints of the same name, perhaps of a run that kept all, are logged, because they will never
// be deleted.
void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory, const FallBack& recovery);

}  // namespace longhaul

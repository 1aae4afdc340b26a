#pragma once

// Programs and threads that watch a training run: the checkpoints of a directory as they appear (checkpoints_iterator),
// pins and metrics of those who read them, and the newest weights for threads of the training program (NewestWeights).

#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/train/onlookers/checkpoints_iterator.h"
#include "longhaul/train/onlookers/newest_weights.h"

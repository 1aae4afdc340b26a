#pragma once

// Saving and restoring a session's variables: Saver and CheckpointManager, meta graphs, warm starts, a mirror of the
// checkpoints, and the records saved with each checkpoint.

#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/saved_state/environment_record.h"
#include "longhaul/train/saving/checkpoint_manager.h"
#include "longhaul/train/saving/meta_graph.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/saving/warm_start.h"

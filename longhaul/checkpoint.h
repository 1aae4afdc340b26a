#pragma once

// Checkpoints on the disk, without sessions and graphs: which there are, what is in them, reading and writing them, and
// safetensors files. What saves and restores a session's variables is in saver.h.

#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/directory/newest_whole_checkpoint.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"

#pragma once

// Checkpoints on disk, without sessions or graphs: listing, inspecting, reading and writing them, and the files of
// other frameworks: state dicts of PyTorch, and safetensors. To save and restore a session's variables, see saver.h.

#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"

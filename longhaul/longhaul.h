#pragma once

// What a training program includes: the whole system in one process, on libtorch. Including it makes libtorch's
// operators known to graphs, and sessions of this process the default.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/data/data_loader.h"
#include "longhaul/events/event_log.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/ops/ops.h"
#include "longhaul/ops/training/optimizers.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/session/environment.h"
#include "longhaul/session/fetch_into.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/hooks/hooks.h"
#include "longhaul/train/input/batching.h"
#include "longhaul/train/input/input_producers.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/reporting/timeline.h"
#include "longhaul/train/saving/checkpoint_manager.h"
#include "longhaul/train/saving/meta_graph.h"
#include "longhaul/train/saving/warm_start.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_signals.h"
#include "longhaul/train/supervisor/basic_train_loop.h"
#include "longhaul/train/supervisor/supervisor.h"
#endif

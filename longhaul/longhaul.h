#pragma once

// What a training program includes: the whole system in one process, on libtorch. Including it makes libtorch's
// operators known to graphs, and sessions of this process the default.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include "longhaul/checkpoint/checkpoint_reader.h"
#include "longhaul/checkpoint/safetensors.h"
#include "longhaul/data/data_loader.h"
#include "longhaul/events/event_log.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/ops/ops.h"
#include "longhaul/ops/optimizers.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/session/environment.h"
#include "longhaul/session/fetch_into.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/train/basic_train_loop.h"
#include "longhaul/train/batching.h"
#include "longhaul/train/checkpoint_manager.h"
#include "longhaul/train/checkpoint_mirror.h"
#include "longhaul/train/hooks.h"
#include "longhaul/train/input_producers.h"
#include "longhaul/train/meta_graph.h"
#include "longhaul/train/monitored_training_session.h"
#include "longhaul/train/preemption.h"
#include "longhaul/train/queue_runner.h"
#include "longhaul/train/stop_signals.h"
#include "longhaul/train/supervisor.h"
#include "longhaul/train/timeline.h"
#include "longhaul/train/warm_start.h"
#endif

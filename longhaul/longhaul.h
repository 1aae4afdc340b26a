#pragma once

// The header for a program that trains: the whole system in one process, on libtorch. Including it registers libtorch's
// operators for graphs and makes in-process sessions the default.
//
// Includes all headers that docs/headers.md lists, except trainer.h, torch.h, server.h, testing.h and
// the messages.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include "longhaul/base.h"
#include "longhaul/checkpoint.h"
#include "longhaul/cluster.h"
#include "longhaul/coordination.h"
#include "longhaul/data.h"
#include "longhaul/events.h"
#include "longhaul/graph.h"
#include "longhaul/hooks.h"
#include "longhaul/input.h"
#include "longhaul/io.h"
#include "longhaul/launch.h"
#include "longhaul/media.h"
#include "longhaul/monitored.h"
#include "longhaul/onlookers.h"
#include "longhaul/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/saver.h"
#include "longhaul/session.h"
#include "longhaul/supervisor.h"
#include "longhaul/tensor.h"
#include "longhaul/train/reporting/progress.h"
#include "longhaul/train/reporting/timeline.h"
#endif

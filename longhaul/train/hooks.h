#pragma once

// All hooks that a MonitoredSession can be given.

#include "longhaul/train/checkpoint_saver_hook.h"
#include "longhaul/train/feed_fn_hook.h"
#include "longhaul/train/final_ops_hook.h"
#include "longhaul/train/global_step_waiter_hook.h"
#include "longhaul/train/logging_tensor_hook.h"
#include "longhaul/train/nan_tensor_hook.h"
#include "longhaul/train/profiler_hook.h"
#include "longhaul/train/step_counter_hook.h"
#include "longhaul/train/stop_at_step_hook.h"
#include "longhaul/train/summary_saver_hook.h"
#include "longhaul/train/weight_digest_hook.h"

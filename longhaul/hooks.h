#pragma once

// SessionRunHook, the base class of a program's own hooks, and the hooks of the library that programs use.

#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/divergence_hook.h"
#include "longhaul/train/hooks/feed_fn_hook.h"
#include "longhaul/train/hooks/final_ops_hook.h"
#include "longhaul/train/hooks/global_step_waiter_hook.h"
#include "longhaul/train/hooks/logging_tensor_hook.h"
#include "longhaul/train/hooks/nan_tensor_hook.h"
#include "longhaul/train/hooks/profiler_hook.h"
#include "longhaul/train/hooks/progress_hook.h"
#include "longhaul/train/hooks/publish_weights_hook.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/hooks/step_counter_hook.h"
#include "longhaul/train/hooks/stop_at_step_hook.h"
#include "longhaul/train/hooks/summary_saver_hook.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"
#include "longhaul/train/hooks/weight_digest_hook.h"

#pragma once

// Threads that stop together (Coordinator, LooperThread), the signals and preemptions that stop them, the replacement
// of lost sessions, and the errors for a directory that another process has locked.

#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/coordination/restarts.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_signals.h"
#include "longhaul/train/signals/used_signals.h"

#pragma once

// Queues that threads fill: queue runners, input producers, batching.

#include "longhaul/train/input/batching.h"
#include "longhaul/train/input/input_producers.h"
#include "longhaul/train/input/queue_runner.h"

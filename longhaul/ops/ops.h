#pragma once

// All functions that add operations.

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/summary_ops.h"

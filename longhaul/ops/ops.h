#pragma once

// All functions that add operations.

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/data_position.h"
#include "longhaul/ops/gradients.h"
#include "longhaul/ops/image_ops.h"
#include "longhaul/ops/init_ops.h"
#include "longhaul/ops/lookup_ops.h"
#include "longhaul/ops/loss_ops.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/nn_ops.h"
#include "longhaul/ops/optimizers.h"
#include "longhaul/ops/parsing_ops.h"
#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/ops/queue_ops.h"
#include "longhaul/ops/reader_ops.h"
#include "longhaul/ops/row_ops.h"
#include "longhaul/ops/saveable.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/summary_ops.h"

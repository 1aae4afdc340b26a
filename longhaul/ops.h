#pragma once

// The functions that add operations to a graph (docs/ops.md): variables, math, layers, losses, input, summaries;
// gradients, optimizers, learning rates.

#include "longhaul/ops/ops.h"

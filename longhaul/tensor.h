#pragma once

// Tensors: bytes with a dtype and a shape. Math on them is left to libtorch.

#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"
#include "longhaul/tensor/tensor.h"

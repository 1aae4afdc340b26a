#pragma once

// Tensors: bytes with a dtype and a shape, and no math, which is libtorch's.

#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"
#include "longhaul/tensor/tensor.h"

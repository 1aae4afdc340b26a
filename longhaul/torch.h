#pragma once

// For programs that use libtorch themselves: to_tensor() and to_aten() turn tensors into each other, sharing the bytes.
#include "longhaul/runtime/aten_tensor.h"

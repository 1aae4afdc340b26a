#pragma once

// For programs that use libtorch themselves: torch_training() puts their own training under supervision, with
// KeepRandomState for what they do beside it; to_tensor() and to_aten() turn tensors into each other, sharing the
// bytes.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/torch_training.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#endif

#pragma once

// Trainer: a libtorch program's own loops under supervision, in a few lines. It is enough for a program that trains
// modules in this process; <longhaul/longhaul.h> and <longhaul/torch.h> have everything below it.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/module_state_dict.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/trainer/trainer.h"
#endif

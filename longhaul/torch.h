#pragma once

// For programs that use libtorch themselves: torch_training() supervises a step function of theirs, torch_loop()
// a loop. KeptValues, register_optimizer(), TorchScheduler, ModuleAverage and LossScale keep what such a program
// carries from step to step; Autocast, StepSampler and KeepRandomState make steps that a restart repeats.
// save_state_dict() and load_state_dict() exchange weights with PyTorch; to_tensor() and to_aten() convert tensors
// without copying their bytes. Includes ATen's functions.

#if __cplusplus < 202002L
#error "C++20 is needed: -std=c++20, or in CMake set(CMAKE_CXX_STANDARD 20)"
#else
#include <ATen/ATen.h>

#include "longhaul/binding/autocast.h"
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/kept_values.h"
#include "longhaul/binding/loop/torch_loop.h"
#include "longhaul/binding/loss_scale.h"
#include "longhaul/binding/module_average.h"
#include "longhaul/binding/module_state_dict.h"
#include "longhaul/binding/optimizer_kind.h"
#include "longhaul/binding/step_sampler.h"
#include "longhaul/binding/torch_training.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#endif

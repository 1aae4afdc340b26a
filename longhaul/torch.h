#pragma once

// For programs that use libtorch themselves: torch_training() puts their own training under supervision, to_tensor()
// and to_aten() turn tensors into each other, sharing the bytes.
#include "longhaul/binding/torch_training.h"
#include "longhaul/runtime/aten_tensor.h"

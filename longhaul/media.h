#pragma once

// PNG and JPEG images as tensors, and samples as WAV files.

#include "longhaul/media/image.h"
#include "longhaul/media/wav.h"

#pragma once

// Files: reading, writing, atomic replacement; TFRecord files, plain or compressed.

#include "longhaul/io/deflate.h"
#include "longhaul/io/file.h"
#include "longhaul/io/inflate.h"
#include "longhaul/io/record.h"

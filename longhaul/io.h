#pragma once

// Files: reading, writing, atomic replacement; TFRecord files, plain or compressed.

#include "longhaul/io/files/file.h"
#include "longhaul/io/records/deflate.h"
#include "longhaul/io/records/inflate.h"
#include "longhaul/io/records/record.h"

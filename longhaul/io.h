#pragma once

// Files: read, written, replaced atomically; TFRecord files, compressed ones too.

#include "longhaul/io/deflate.h"
#include "longhaul/io/file.h"
#include "longhaul/io/inflate.h"
#include "longhaul/io/record.h"

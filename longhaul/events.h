#pragma once

// Event files, which TensorBoard shows: their writers and reader, summaries, and a log sink that writes to them.

#include "longhaul/events/event_log.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/events/file_writer_cache.h"
#include "longhaul/events/summary.h"

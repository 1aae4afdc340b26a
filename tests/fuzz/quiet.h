#pragma once

#include <google/protobuf/stubs/logging.h>

#include "longhaul/base/log.h"

namespace longhaul::fuzz {

// Damaged files make log lines. protobuf writes its own to stderr, one for each string that is not UTF-8.
inline const google::protobuf::LogSilencer protobuf_silencer;
inline const LogSink log_before = set_log_sink([](LogLevel, const std::string&) {});

}  // namespace longhaul::fuzz

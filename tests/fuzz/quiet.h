#pragma once

#include <google/protobuf/stubs/logging.h>

namespace longhaul::fuzz {

// protobuf writes a line to stderr for each string that is not UTF-8.
inline const google::protobuf::LogSilencer silencer;

}  // namespace longhaul::fuzz

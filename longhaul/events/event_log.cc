#include "longhaul/events/event_log.h"

#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

proto::LogMessage::Level to_proto(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return proto::LogMessage::DEBUGGING;
    case LogLevel::kInfo: return proto::LogMessage::INFO;
    case LogLevel::kWarning: return proto::LogMessage::WARN;
    case LogLevel::kError: return proto::LogMessage::ERROR;
  }
  return proto::LogMessage::UNKNOWN;
}

}  // namespace

LogSink event_log_sink(FileWriter* writer, LogLevel verbosity, LogSink also) {
  if (writer == nullptr) throw FailedPreconditionError("messages can only be written with a summary writer");
  return [writer, verbosity, also = std::move(also)](LogLevel level, const std::string& message) {
    if (also) also(level, message);
    if (level >= verbosity) writer->add_log_message(to_proto(level), message);
  };
}

}  // namespace longhaul

#include "longhaul/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

LogSink spdlog_sink() {
  auto logger = std::make_shared<spdlog::logger>("longhaul", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const char* level = std::getenv("LONGHAUL_LOG_LEVEL");
  logger->set_level(level != nullptr ? spdlog::level::from_str(level) : spdlog::level::warn);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  return [logger](LogLevel at, const std::string& message) { logger->log(to_spdlog(at), message); };
}

struct Log {
  Mutex mutex;
  LogSink sink GUARDED_BY(mutex) = spdlog_sink();
};

Log& the_log() {
  static Log* log = new Log;  // outlives every static object that may still log while the process ends
  return *log;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = the_log();
  MutexLock lock(log.mutex);
  return std::exchange(log.sink, std::move(sink));
}

void log_message(LogLevel level, const std::string& message) {
  Log& log = the_log();
  MutexLock lock(log.mutex);
  if (log.sink) log.sink(level, message);
}

}  // namespace longhaul
